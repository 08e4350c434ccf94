import type { Question, Verdict } from '../store/contract.ts'

/**
 * Validates a store's reply before it is used: a verdict for each question, with
 *
 *     allowed     a boolean
 *     remaining   units, 0 to Infinity
 *     resetAfterMs  milliseconds, 0 to MOST
 *     retryAfterMs  milliseconds, 0 to Infinity; for a rejection more than 0
 *     delay       milliseconds, 0 to MOST
 *
 * @returns undefined if one of them is invalid
 */
export function checkVerdicts(given: unknown, questions: readonly Question[]): readonly Verdict[] | undefined {
  try {
    if (!Array.isArray(given) || given.length !== questions.length) return undefined
    const verdicts: Verdict[] = []
    for (let i = 0; i < questions.length; i++) {
      const { allowed, remaining, resetAfterMs, retryAfterMs, delayMs: delay } = given[i] as Partial<Verdict>
      if (typeof allowed !== 'boolean' || !isFrom0(remaining) || !isFrom0(resetAfterMs) || !isFrom0(retryAfterMs) || !isFrom0(delay)) return
      if (resetAfterMs > MOST || delay > MOST || (!allowed && retryAfterMs === 0)) return undefined
      verdicts.push({ allowed, remaining, resetAfterMs, retryAfterMs, delayMs: delay })
    }
    return verdicts
  } catch {
    // An object whose getters throw.
    return undefined
  }
}

const MOST: number = Number.MAX_SAFE_INTEGER

function isFrom0(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}
