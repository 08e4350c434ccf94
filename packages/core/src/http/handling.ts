import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { askAll, isThenable, NoAnswer, type Patience, settle } from '../report/user-function.ts'
import type { AdapterOptions } from './adapter-options.ts'
import type { Rejection } from './answer/rejection.ts'
import type { Report } from './reports.ts'

/**
 * The result of the `handler` of the options for a rejected request: `'answered'`, now or later; `'failed'`, if nothing was sent, so that
 * the adapter answers; or `'left'`, if the handler began an answer, so that the adapter leaves the response alone.
 */
export type Handled = 'answered' | 'failed' | 'left'

/** Has the `handler` of the options answer rejected requests. */
export class Handling<Args extends readonly unknown[], Name extends string> {
  readonly #handler: AdapterOptions<never, Args, Name>['handler']
  readonly #patience: Patience
  readonly #report: Report

  constructor(handler: AdapterOptions<never, Args, Name>['handler'], patience: Patience, report: Report) {
    this.#handler = handler
    this.#patience = patience
    this.#report = report
  }

  /** As the guard's. */
  handle(
    rejection: Rejection<Name>,
    args: Args,
    response: ServerResponse | Http2ServerResponse,
    keep: ((value: unknown) => void) | undefined,
  ): Handled | Promise<Handled> {
    if (this.#handler === undefined) return 'failed'
    const answer = askAll(this.#handler, ...args, rejection)
    const settled = (value: unknown): Handled => {
      if (value instanceof NoAnswer) return this.#unhandled(value, response)
      keep?.(value)
      return 'answered'
    }
    return isThenable(answer) ? settle(answer, this.#patience).then(({ value }) => settled(value)) : settled(answer)
  }

  /** As the guard's. */
  expect(answered: () => boolean, answer: () => void): void {
    if (answered()) return
    const { clock, timeout } = this.#patience
    clock.setTimeout(() => {
      if (answered()) return
      this.#report('handler', 'Option "handler"', 'it has finished, but sent no answer')
      answer()
    }, timeout)
  }

  /** A handler has failed, or is late. */
  #unhandled(failure: NoAnswer, response: ServerResponse | Http2ServerResponse): Handled {
    const late = failure.error === undefined
    // One that has begun is not late: its client may be slow.
    if (!late || !response.headersSent) this.#report('handler', 'Option "handler"', failure)
    // It may go on, and write to what has ended by then.
    response.on('error', () => {})
    if (!response.headersSent) return 'failed'
    // A handler that threw will not go on, so the client has to see that its answer is broken.
    if (!late && !response.writableEnded) response.destroy()
    return 'left'
  }
}
