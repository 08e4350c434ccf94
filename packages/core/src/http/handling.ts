import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { askAll, isThenable, NoAnswer, type Patience, settle } from '../report/user-function.ts'
import type { AdapterOptions } from './adapter-options.ts'
import type { Rejection } from './answer/rejection.ts'
import type { Report } from './reports.ts'

/**
 * The result of the `handler` of the options for a rejected request:
 * - `'answered'`: it has answered, or will later.
 * - `'failed'`: nothing was sent, so the adapter answers.
 * - `'left'`: the handler began an answer, so the adapter leaves the response alone.
 */
export type Handled = 'answered' | 'failed' | 'left'

/** Answers rejected requests with the `handler` of the options. */
export class Handling<Args extends readonly unknown[], Name extends string> {
  readonly #handler: AdapterOptions<never, Args, Name>['handler']
  readonly #patience: Patience
  readonly #report: Report

  constructor(handler: AdapterOptions<never, Args, Name>['handler'], patience: Patience, report: Report) {
    this.#handler = handler
    this.#patience = patience
    this.#report = report
  }

  /** Implements the guard's `handle`. */
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

  /** Implements the guard's `expect`. */
  expect(answered: () => boolean, answer: () => void): void {
    if (answered()) return
    const { clock, timeout } = this.#patience
    clock.setTimeout(() => {
      if (answered()) return
      this.#report('handler', 'Option "handler"', 'it has finished, but sent no answer')
      answer()
    }, timeout)
  }

  /** Handles a handler that has failed or is late. */
  #unhandled(failure: NoAnswer, response: ServerResponse | Http2ServerResponse): Handled {
    const late = failure.error === undefined
    // A handler that has begun to answer is not late, because its client may be slow.
    if (!late || !response.headersSent) this.#report('handler', 'Option "handler"', failure)
    // It may continue, and write to a response that has ended by then.
    response.on('error', () => {})
    if (!response.headersSent) return 'failed'
    // A handler that threw will not continue, so the client must see that its response is incomplete.
    if (!late && !response.writableEnded) response.destroy()
    return 'left'
  }
}
