import { WeirError } from '../report/errors.ts'
import { reasonOf } from '../report/show.ts'
import { type AdapterSide, adapterOf } from '../throttler/adapter-side.ts'
import type { KeyLimit } from '../throttler/key-limits.ts'
import type { Throttler } from '../throttler/throttler.ts'
import type { Clock, TimerHandle } from '../time/clock.ts'
import type { CheckedRules, RuleSet } from './check.ts'
import { nextName, toBeJudged } from './next.ts'
import type { Override } from './overrides.ts'

/** The longest delay of an override's end if the wall clock is set, in milliseconds. */
const LONGEST_WAIT = 60_000

/** The rules in use at a throttler: its policies, and limits of single keys until they expire. */
export class LiveRules<Req> {
  readonly #throttler: Throttler<string, Req>
  readonly #side: AdapterSide<string, Req>
  readonly #clock: Clock
  #rules: CheckedRules<Req> | undefined
  #timer: TimerHandle

  constructor(throttler: Throttler<string, Req>) {
    this.#throttler = throttler
    this.#side = adapterOf(throttler)
    this.#clock = this.#side.clock
  }

  get rules(): CheckedRules<Req> | undefined {
    return this.#rules
  }

  /** @throws WeirError as `update` does; then the previous rules stay in use */
  set(rules: CheckedRules<Req>): void {
    this.#apply(rules)
    this.#rules = rules
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer)
  }

  #apply(rules: CheckedRules<Req>): void {
    const now = this.#clock.now()
    const running = openOf(rules, now)
    const next = rules.next === undefined ? NOTHING : openOf(rules.next, now)
    this.#throttler.update(
      [...rules.policies, ...(rules.next === undefined ? [] : toBeJudged(rules.next))],
      [...limitsOf(rules, running), ...limitsOf(rules.next, next).map((limit) => ({ ...limit, policy: nextName(limit.policy) }))],
    )
    const open = [...running, ...next]
    this.#expect(open, now)
  }

  #expect(open: readonly Override[], now: number): void {
    this.#clock.clearTimeout(this.#timer)
    const next = open.reduce((first, { until }) => Math.min(first, until), Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = this.#clock.setTimeout(() => this.#expire(open), Math.min(next - now, LONGEST_WAIT))
  }

  #expire(open: readonly Override[]): void {
    if (this.#throttler.state === 'closed') return
    const now = this.#clock.now()
    if (!open.some(({ until }) => until <= now)) {
      this.#expect(open, now)
      return
    }
    try {
      this.#apply(this.#rules as CheckedRules<Req>)
    } catch (error) {
      // A timer calls this, so an error would end the process. Another throttler may conflict with the rules now, but not at the next
      // attempt.
      this.#side.warn(
        new WeirError(
          'WEIR_RULES_REJECTED',
          `Limits of single keys could not be removed when they expired: ${reasonOf(error)}. Weir tries again.`,
          { cause: error },
        ),
        'overrides',
      )
      this.#timer = this.#clock.setTimeout(() => this.#expire(open), LONGEST_WAIT)
    }
  }
}

const NOTHING: readonly Override[] = []

function openOf({ overrides }: RuleSet<never>, now: number): readonly Override[] {
  return overrides.filter(({ until }) => until > now)
}

/** The limits of existing policies. An override of a policy with plans becomes one for each plan. */
function limitsOf(rules: RuleSet<never> | undefined, open: readonly Override[]): readonly KeyLimit[] {
  const plansOf = new Map<string, readonly string[]>()
  for (const policy of rules?.policies ?? []) {
    const { name = 'default' } = policy
    if ('plans' in policy)
      plansOf.set(
        name,
        Object.keys(policy.plans).map((plan) => `${name}:${plan}`),
      )
  }
  return open.flatMap(({ policy, key, limit }) => (plansOf.get(policy) ?? [policy]).map((name) => ({ policy: name, key, limit })))
}
