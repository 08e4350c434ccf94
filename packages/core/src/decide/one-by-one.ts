import { boundedOnce } from '../keys/key-text.ts'
import { isCost } from '../keys/units.ts'
import { closedError } from '../report/errors.ts'
import type { Keys } from './asking.ts'
import { partOf, rejectedPart } from './decide-one.ts'
import { type Decision, NO_POLICY, type PolicyDecision } from './decision.ts'
import { combined } from './levels.ts'
import type { Limiter } from './limiter.ts'
import { ALL_KEY } from './policy.ts'

/** The parts of the throttler that such decisions need. */
interface OneByOneHost {
  readonly closed: boolean
  /** Brings a limiter to the running interval. */
  roll(limiter: Limiter, now: number): void
}

/** Decides by any policies. It first checks all of them, and then counts at all or at none. */
export class OneByOne {
  readonly #host: OneByOneHost
  readonly #costOf: (cost: number | undefined, place: number) => number
  #limiters: readonly Limiter[] = []
  #shared: readonly boolean[] = []

  /** @param costOf the cost of a request whose own cost is invalid */
  constructor(host: OneByOneHost, costOf: (cost: number | undefined, place: number) => number) {
    this.#host = host
    this.#costOf = costOf
  }

  /** @param shared for each policy, whether all requests share one key */
  adopt(limiters: readonly Limiter[], shared: readonly boolean[]): void {
    this.#limiters = limiters
    this.#shared = shared
  }

  /**
   * @param keys a key for each policy, or one for all of them. Undefined if a policy does not apply
   * @param places the indexes of the policies that decide. The first `applied` of them are used
   */
  decide(keys: string | Keys, costs: readonly number[], count: boolean, places: readonly number[], applied: number, now: number): Decision {
    const limiters = this.#limiters
    // A new array for each request, because a listener may start another decision meanwhile.
    const slots: number[] = []
    const rejects: boolean[] = []
    let applying = 0
    let allowed = true
    // Whether candidate rules would allow the request.
    let allowedNext = true
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const key = this.#keyOf(keys, i)
      if (key === undefined) continue
      applying++
      const limiter = limiters[i] as Limiter
      if (now >= limiter.meter.rollAt) this.#host.roll(limiter, now)
      const slot = limiter.locate(key, now)
      slots[at] = slot
      if (!isCost(costs[i])) costs = costs.with(i, this.#costOf(costs[i], i))
      rejects[at] = slot < 0 ? limiter.overflow === 'reject' : !limiter.meter.allows(slot, costs[i] as number, now, count)
      if (rejects[at]) {
        if (!limiter.policy.dryRun) allowed = false
        else if (limiter.policy.candidate) allowedNext = false
      }
    }
    if (applying === 0) {
      if (this.#host.closed) throw closedError()
      return NO_POLICY
    }
    const parts: PolicyDecision[] = []
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const key = this.#keyOf(keys, i)
      if (key === undefined) continue
      const limiter = limiters[i] as Limiter
      const { candidate: next } = limiter.policy
      const slot = slots[at] as number
      const cost = costs[i] as number
      const part =
        rejects[at] && slot >= 0
          ? rejectedPart(limiter, slot, key, cost, now, count)
          : partOf(limiter, slot, key, cost, now, next ? allowedNext : allowed, count)
      // The caller does not see candidate rules.
      if (!next) parts.push(part)
    }
    return parts.length === 0 ? NO_POLICY : combined(parts)
  }

  #keyOf(keys: string | Keys, place: number): string | undefined {
    if (typeof keys === 'string') return this.#shared[place] === true ? ALL_KEY : keys
    const key = keys[place]
    return key === undefined ? undefined : boundedOnce(key)
  }
}
