import { drainTime } from '../algorithms/drain-time.ts'
import type { Question, Verdict } from '../store/contract.ts'

/** The part of requests that is compared. */
interface Asks {
  readonly questions: readonly Question[]
}

/** Whether two requests need units of the same keys by the same rules, so that their verdicts are equal if their units are. */
export function alike(a: Asks, b: Asks): boolean {
  if (a.questions.length !== b.questions.length) return false
  return a.questions.every((one, i) => {
    const { policy, key, kind, limit, at } = b.questions[i] as Question
    if (one.kind !== 'take' || kind !== 'take' || one.policy !== policy || one.key !== key || one.limit !== limit) return false
    const width = policy.step.width?.(policy.parameters)
    return width === undefined || Math.floor(one.at / width) === Math.floor(at / width)
  })
}

/** Whether alike requests also need equal units. */
export function equal(a: Asks, b: Asks): boolean {
  return alike(a, b) && a.questions.every(({ units }, i) => units === b.questions[i]?.units)
}

/** Whether a request may be sent together with others that are alike. */
export function joins({ questions }: Asks): boolean {
  return questions.every(({ kind, units, policy, reservation }) => {
    return kind === 'take' && units > 0 && policy.step.oneByOne !== true && reservation === undefined
  })
}

/** The questions for several requests together: the units of all of them. */
export function questionsOf(members: readonly Asks[]): readonly Question[] {
  const { questions } = members.at(-1) as Asks
  return questions.map((question, i) => ({ ...question, units: unitsOf(members, i) }))
}

/** The units of some requests for one of their keys. */
export function unitsOf(members: readonly Asks[], i: number): number {
  return members.reduce((sum, { questions }) => sum + (questions[i] as Question).units, 0)
}

/**
 * The verdicts that the store would have given several requests, one after another, derived from its verdict for all of them.
 *
 * @param verdicts of the request for all units, which was allowed
 */
export function verdictsOf(members: readonly Asks[], verdicts: readonly Verdict[]): (readonly Verdict[])[] {
  const after = verdicts.map((_, i) => unitsOf(members, i))
  return members.map(({ questions }) =>
    verdicts.map((verdict, i) => {
      const { units, limit, policy } = questions[i] as Question
      const later = ((after[i] as number) -= units)
      const { remaining, delayMs: delay } = verdict
      // Only buckets delay requests, and their first parameter is the interval.
      const [interval = 0] = policy.parameters
      return { ...verdict, remaining: remaining + later, delayMs: delay > 0 ? Math.max(0, delay - drainTime(later, limit, interval)) : 0 }
    }),
  )
}
