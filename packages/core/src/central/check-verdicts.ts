import { attempt, isNumber, MOST } from '../report/readers.ts'
import type { Question, Verdict } from '../store/contract.ts'

/**
 * Validates a store's reply before it is used: a verdict for each question, with
 *
 *     allowed     a boolean
 *     remaining   units, 0 to Infinity
 *     resetAfterMs  milliseconds, 0 to MOST
 *     retryAfterMs  milliseconds, 0 to Infinity; for a rejection more than 0
 *     delayMs     milliseconds, 0 to MOST
 *
 * @returns undefined if one of them is invalid
 */
export function checkVerdicts(given: unknown, questions: readonly Question[]): readonly Verdict[] | undefined {
  return attempt(() => {
    if (!Array.isArray(given) || given.length !== questions.length) return undefined
    const verdicts: Verdict[] = []
    for (let i = 0; i < questions.length; i++) {
      const { allowed, remaining, resetAfterMs, retryAfterMs, delayMs } = given[i] as Partial<Verdict>
      if (typeof allowed !== 'boolean' || !isNumber(remaining, 0, Infinity) || !isNumber(retryAfterMs, 0, Infinity)) return undefined
      if (!isNumber(resetAfterMs, 0, MOST) || !isNumber(delayMs, 0, MOST) || (!allowed && retryAfterMs === 0)) return undefined
      verdicts.push({ allowed, remaining, resetAfterMs, retryAfterMs, delayMs })
    }
    return verdicts
  })
}
