import type { Reservation, Reserving } from '../algorithms/meter.ts'
import { boundedOnce } from '../keys/key-text.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Asking, AskingHost, Keys } from './asking.ts'
import { partOf, refuse, reservedPart } from './decide-one.ts'
import type { Decision, PolicyDecision } from './decision.ts'
import { combined } from './levels.ts'
import { type Limiter, NO_SLOT } from './limiter.ts'

/** Decisions of policies that take quota ahead: a request that finds none waits for units that the store grants. */
export class WaitingDecisions {
  readonly #host: AskingHost

  constructor(host: AskingHost) {
    this.#host = host
  }

  /** The places of the policies that are to ask the store, where none refuses the request by what is known. */
  whoMustAsk(keys: Keys, costs: readonly number[], places: readonly number[], applied: number = places.length): number[] {
    const host = this.#host
    const { limiters } = host
    const asking: number[] = []
    const now = host.clock.monotonic()
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const key = keys[i]
      if (key === undefined) continue
      const limiter = limiters[i] as Limiter
      if (now >= limiter.meter.rollAt) host.roll(limiter, now)
      const slot = limiter.locate(boundedOnce(key), now)
      if (slot < 0) continue
      const cost = host.costOf(costs[i], i)
      const { dryRun } = limiter.policy
      if (!dryRun && limiter.meter.reserving?.needsStore(slot, cost, now) === true) asking.push(i)
      else if (!dryRun && !limiter.meter.admits(slot, cost, now)) return []
    }
    return asking
  }

  /**
   * Asks the store for the units of the policies at the places `asking`, then decides on the others.
   *
   * @param others decides where some of the others ask the store too
   */
  async decide(keys: Keys, costs: readonly number[], asking: readonly number[], others?: Asking): Promise<Decision> {
    const host = this.#host
    const before = host.limiters
    const limitAgain = host.noteLimits(keys)
    const asked = await Promise.all(
      asking.map(async (i) => {
        const limiter = before[i] as Limiter
        const key = boundedOnce(keys[i] as string)
        const cost = host.costOf(costs[i], i)
        return { limiter, key, cost, ...(await this.#ask(limiter, key, cost)) }
      }),
    )
    limitAgain()
    const refused = asked.some(({ granted }) => granted === false)
    // Decide on the others now: what was true before the wait need not be true any more. `update` may have moved them.
    const { limiters } = host
    const restKeys: (string | undefined)[] = limiters.map(() => undefined)
    const restCosts = limiters.map(() => 1)
    for (const [i, limiter] of before.entries()) {
      const place = limiters.indexOf(limiter)
      if (place < 0 || asked.some((ask) => ask.limiter === limiter && ask.granted === true)) continue
      restKeys[place] = keys[i]
      restCosts[place] = costs[i] as number
    }
    const decision =
      others === undefined || refused
        ? host.decide(restKeys, restCosts, !refused)
        : await others.decide(
            restKeys,
            restCosts,
            limiters.map((_, place) => place),
            limiters.length,
          )
    const now = host.clock.monotonic()
    const allowed = !refused && decision.allowed
    const parts = [...decision.parts] as PolicyDecision[]
    for (const { limiter, key, cost, granted, ordinal } of asked) {
      // A key that finds no room of its own shares that of others.
      const slot = limiter.locate(key, now)
      const counted = slot < 0 ? key : (limiter.table.keys[slot] as string)
      if (granted === true && !allowed) limiter.meter.refund(counted, ordinal, cost, now)
      if (granted === true) parts.push(reservedPart(limiter, slot, key, allowed ? cost : 0, ordinal, now))
      if (granted === false) {
        const at = parts.findIndex((part) => part.policy?.id === limiter.policy.id)
        if (at >= 0) parts.splice(at, 1)
        parts.push(slot < 0 ? partOf(limiter, NO_SLOT, key, cost, now, false, true) : refuse(limiter, slot, key, cost, now))
      }
    }
    const order = new Map(host.limiters.map(({ policy }, i) => [policy.id, i]))
    const place = ({ policy }: PolicyDecision) => (policy === undefined ? 0 : (order.get(policy.id) ?? 0))
    return combined(parts.sort((a, b) => place(a) - place(b)))
  }

  /** Whether the store granted the units, undefined when it did not say so in time; and the interval that they are of. */
  #ask(limiter: Limiter, key: string, cost: number): Promise<{ granted: boolean | undefined; ordinal: Ordinal }> {
    const { clock } = this.#host
    const given = limiter.givenTo(key)
    return new Promise((resolve) => {
      const reservation: Reservation = {
        slot: limiter.locate(key),
        cost,
        // An update may change it meanwhile.
        get limit() {
          return limiter.limitFor(key, given)
        },
        abandoned: false,
        answer: (granted, ordinal = limiter.cell.ordinal) => {
          clock.clearTimeout(timer)
          resolve({ granted, ordinal })
        },
      }
      const timer = clock.setTimeout(() => {
        reservation.abandoned = true
        resolve({ granted: undefined, ordinal: limiter.cell.ordinal })
      }, limiter.policy.deadline)
      const reserving = limiter.meter.reserving as Reserving
      reserving.reserve(reservation, clock.monotonic())
    })
  }
}
