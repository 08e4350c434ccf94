import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { finished } from 'node:stream'
import type { Decision } from '../decide/decision.ts'
import { show } from '../report/errors.ts'
import { askAll, isThenable, NoAnswer, type Patience, settle } from '../report/user-function.ts'
import type { AdapterOptions } from './adapter-options.ts'
import type { Report } from './reports.ts'

type SettlementOptions<Args extends readonly unknown[], Name extends string> = Pick<
  AdapterOptions<never, Args, Name>,
  'requestWasSuccessful' | 'skipFailedRequests' | 'skipSuccessfulRequests'
>

/** Refunds requests depending on their response: `skipFailedRequests`, `skipSuccessfulRequests`, `requestWasSuccessful`. */
export class Settlement<Args extends readonly unknown[], Name extends string> {
  readonly #options: SettlementOptions<Args, Name>
  readonly #throttler: { refund(decision: Decision): void }
  readonly #patience: Patience
  readonly #report: Report

  constructor(options: SettlementOptions<Args, Name>, throttler: { refund(decision: Decision): void }, patience: Patience, report: Report) {
    this.#options = options
    this.#throttler = throttler
    this.#patience = patience
    this.#report = report
  }

  /** Waits for the end of the response. `args` are the arguments that the framework called the middleware with. */
  watch(decision: Decision<Name>, response: ServerResponse | Http2ServerResponse, args: Args): void {
    whenOver(response, (error) => {
      // HTTP/2 has no error for a stream that the client has reset before its answer was complete.
      const complete = (error === undefined || error === null) && response.writableEnded !== false
      this.settle(decision, response.statusCode, complete, args)
    })
  }

  /** @param complete whether the whole response was sent */
  settle(decision: Decision<Name>, status: number, complete: boolean, args: Args): void {
    const { requestWasSuccessful } = this.#options
    if (!complete || requestWasSuccessful === undefined) {
      this.#refund(decision, complete && status < 400)
      return
    }
    const answer = askAll(requestWasSuccessful, ...args)
    if (isThenable(answer)) void settle(answer, this.#patience).then(({ value }) => this.#refund(decision, value))
    else this.#refund(decision, answer)
  }

  /** @param success true or false; with any other value, nothing is refunded */
  #refund(decision: Decision<Name>, success: unknown): void {
    try {
      const { skipFailedRequests, skipSuccessfulRequests } = this.#options
      if (success === true ? skipSuccessfulRequests : success === false && skipFailedRequests) this.#throttler.refund(decision)
      else if (success instanceof NoAnswer) this.#report('settle', 'Nothing is refunded, because option "requestWasSuccessful"', success)
      else if (typeof success !== 'boolean')
        this.#report(
          'settle',
          'Nothing is refunded, because option "requestWasSuccessful" must return true or false, but returned',
          show(success),
        )
    } catch (error) {
      this.#report('settle', 'A request could not be refunded', error)
    }
  }
}

/** Does the same as `finished` of Node.js, which accepts only streams. A response in a test may be only an emitter of their events. */
function whenOver(response: ServerResponse | Http2ServerResponse, then: (error?: Error | null) => void): void {
  try {
    finished(response, then)
    return
  } catch {
    // The response is no stream.
  }
  let over = false
  const once = (error?: Error): void => {
    if (over) return
    over = true
    then(error)
  }
  const emitter: EventEmitter = response
  emitter.once('finish', () => once())
  emitter.once('error', once)
  emitter.once('close', () => once(new Error('The connection was closed before the response had been sent.')))
}
