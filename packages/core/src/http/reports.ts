import { isWeirError, WeirError } from '../report/errors.ts'
import { Once } from '../report/once.ts'
import { reasonOf } from '../report/show.ts'
import { NoAnswer } from '../report/user-function.ts'

/**
 * Reports a cause of trouble, the first time only.
 *
 * @param why an error, a text, or the reason for which a function failed
 */
export type Report = (cause: string, what: string, why: unknown) => void

/** Reports by warnings of a throttler. Never throws. */
export function reporter(throttler: { warn(error: WeirError, subject: string): void }): Report {
  const reported = new Once()
  return (cause, what, why) => {
    if (!reported.first(cause)) return
    try {
      const code = isWeirError(why) ? why.code : 'WEIR_WARN_OPTION_FUNCTION_FAILED'
      const none = why instanceof NoAnswer
      const message = none ? `${what} ${why.problem}` : `${what}: ${reasonOf(why)}`
      throttler.warn(new WeirError(code, message, { cause: none ? why.error : why }), cause)
    } catch {
      // A warning that fails can't be reported, and the request matters more.
    }
  }
}
