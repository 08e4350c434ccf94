import { WeirError } from '../report/errors.ts'

/** Why a request that waited could not go. */
export type AcquireFailure = 'timeout' | 'aborted' | 'queue-full' | 'never-fits' | 'closed'

/** The error of `acquire`, `schedule` and wrapped functions if the request can't go. */
export class AcquireError extends WeirError {
  override readonly name: string = 'AcquireError'
  /**
   * `'timeout'`: its time is over, or it was known that it can't go in time; `'aborted'`: by its signal, whose reason is the `cause`;
   * `'queue-full'`: as many wait as may; `'never-fits'`: it costs more than the limit; `'closed'`: the throttler is.
   */
  readonly reason: AcquireFailure
  /** Milliseconds after which a request would be let in if no other came before it, where that is known. `Infinity` when it never fits. */
  readonly retryAfterMs: number | undefined

  constructor(reason: AcquireFailure, message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super('WEIR_NOT_ACQUIRED', message, options)
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}
