import { WeirError } from '../report/errors.ts'

/** The reason for which a request failed. */
export type AcquireFailure = 'timeout' | 'aborted' | 'queue-full' | 'never-fits' | 'closed'

/** The error that `acquire`, `schedule` and wrapped functions throw if the request fails. */
export class AcquireError extends WeirError {
  override readonly name: string = 'AcquireError'
  /**
   * The reason for the failure:
   * - `'timeout'`: the request has reached its timeout, or can't get its units before it.
   * - `'aborted'`: its signal was aborted. The signal's reason is the `cause`.
   * - `'queue-full'`: the queue is full.
   * - `'never-fits'`: the request costs more than the limit.
   * - `'closed'`: the throttler is closed.
   */
  readonly reason: AcquireFailure
  /**
   * Milliseconds after which a retry would be allowed if no other request came first. `Infinity` if the request never fits, and undefined
   * if the time is unknown.
   */
  readonly retryAfterMs: number | undefined

  constructor(reason: AcquireFailure, message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super('WEIR_NOT_ACQUIRED', message, options)
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}
