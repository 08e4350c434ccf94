import { show } from '../report/errors.ts'
import { MOST_UNITS } from '../store/units.ts'
import { isObject } from './policy.ts'
import type { Path, Problems } from './problems.ts'

/** A checked limit of one key. */
export interface Override {
  readonly policy: string
  readonly key: string
  readonly limit: number
  /** Wall clock in milliseconds since the Unix epoch. `Infinity` for no end. */
  readonly until: number
}

/** The most overrides in one document. A map of them takes a few MB, and some ten milliseconds to make. */
export const MOST_OVERRIDES = 50_000
/** Longer keys are counted by a hash, and people don't write them in documents. */
const LONGEST_KEY = 1_000
const OPTIONS: readonly string[] = ['policy', 'key', 'limit', 'until']
/** RFC 3339. Without an offset the time would be ambiguous. */
const TIME = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})$/

/** Milliseconds since the Unix epoch of a time such as `'2026-11-23T22:00:00Z'`. Undefined for any other value. */
export function timeOf(given: unknown): number | undefined {
  if (typeof given !== 'string' || !TIME.test(given)) return undefined
  // biome-ignore lint/style/noRestrictedGlobals: no time is read here
  const time = Date.parse(given)
  return Number.isNaN(time) ? undefined : time
}

/** @param policies the names of policies that an override may refer to */
export function checkOverrides(given: unknown, policies: ReadonlySet<string>, path: Path, problems: Problems): readonly Override[] {
  if (given === undefined) return []
  if (!Array.isArray(given) || given.length > MOST_OVERRIDES) {
    problems.add(path, `Use a list of at most ${MOST_OVERRIDES} overrides.`)
    return []
  }
  /** Keys that already have an override, by policy. */
  const seen = new Map([...policies].map((policy) => [policy, new Set<string>()]))
  const overrides: Override[] = []
  for (const [place, one] of (given as readonly unknown[]).entries()) {
    if (problems.full) break
    const override = checkOverride(one, policies, [...path, place], problems)
    if (override === undefined) continue
    const keys = seen.get(override.policy) as Set<string>
    if (keys.has(override.key))
      problems.add([...path, place], `The policy ${show(override.policy)} has two overrides for the key ${show(override.key)}.`)
    keys.add(override.key)
    overrides.push(override)
  }
  return overrides
}

function checkOverride(given: unknown, policies: ReadonlySet<string>, path: Path, problems: Problems): Override | undefined {
  const wrong = (option: string | undefined, message: string): undefined => {
    problems.add(option === undefined ? path : [...path, option], message)
    return undefined
  }
  if (!isObject(given)) return wrong(undefined, 'Use an object such as { "policy": "customer", "key": "acme", "limit": 5000 }.')
  const strange = Object.keys(given).find((option) => !OPTIONS.includes(option))
  if (strange !== undefined) return wrong(strange, `Unknown option ${show(strange)}. An override has: ${OPTIONS.join(', ')}.`)
  const { policy, key, limit, until } = given
  if (typeof policy !== 'string' || !policies.has(policy)) {
    return wrong('policy', `There is no policy ${show(policy)}. Use ${[...policies].map((name) => show(name)).join(' or ')}.`)
  }
  if (typeof key !== 'string' || key === '' || key.length > LONGEST_KEY)
    return wrong('key', `It is ${show(key)}. Use a string of 1 to ${LONGEST_KEY} characters.`)
  if (typeof limit !== 'number' || !(limit === 0 || (limit >= 1 && limit <= MOST_UNITS)))
    return wrong('limit', `It is ${show(limit)}. Use 0, or a number from 1 to ${MOST_UNITS}.`)
  const end = until === undefined ? Number.POSITIVE_INFINITY : timeOf(until)
  if (end === undefined) return wrong('until', `It is ${show(until)}. Use a time such as "2026-11-23T22:00:00Z".`)
  return { policy, key, limit, until: end }
}
