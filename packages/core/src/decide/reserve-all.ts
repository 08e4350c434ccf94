import type { Reserved, ReserveRequest, StoreReservations } from '../algorithms/reservations.ts'
import { boundedOnce } from '../keys/key-text.ts'
import { Alarm } from '../time/alarm.ts'
import type { Asking, AskingHost, Keys, Opening } from './asking.ts'
import { partOf, reject, reservedPart } from './decide-one.ts'
import type { Decision, PolicyDecision } from './decision.ts'
import { combined } from './levels.ts'
import { type Limiter, NO_SLOT } from './limiter.ts'

/** A policy's part of a request that has waited. */
interface Asked {
  readonly limiter: Limiter
  readonly key: string
  readonly cost: number
  readonly reserved: Reserved | undefined
}

/** A request that waits for units of one policy. */
interface Waiting extends ReserveRequest {
  readonly reservations: StoreReservations
  /** End of its wait, on the monotonic clock. */
  readonly endsAt: number
}

/**
 * Decides by several policies, if some of them take quota ahead and have none here. It first checks all policies, reserves units where the
 * store is needed, and waits for them. Then it counts at the other policies. If one policy rejects, the reserved units are returned.
 */
export class ReserveAll {
  readonly #host: AskingHost
  readonly #waiting = new Set<Waiting>()
  /** One timer for all waiting requests. */
  readonly #alarm: Alarm

  constructor(host: AskingHost) {
    this.#host = host
    this.#alarm = new Alarm(host.clock, () => this.#expire())
  }

  /** The indexes of the policies that need the store. Empty if a policy rejects the request by the counts of this process. */
  needed(keys: Keys, costs: readonly number[], places: readonly number[], applied: number = places.length): number[] {
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
      const { meter, policy } = limiter
      if (policy.dryRun) continue
      if (meter.reservations?.leased === true && meter.reservations.needsStore(slot, cost, now)) asking.push(i)
      else if (!meter.allows(slot, cost, now)) return []
    }
    return asking
  }

  /**
   * Reserves units at the policies of the indexes `asking`, then decides by the others. If other requests have used up their quota
   * meanwhile, it reserves there too. Each policy reserves once, and its wait ends within its `storeTimeout` after the request came.
   *
   * @param others decides if some of the other policies need the store too
   * @param opens the reservation that these open
   */
  async decide(keys: Keys, costs: readonly number[], asking: readonly number[], others?: Asking, opens?: Opening): Promise<Decision> {
    const host = this.#host
    const before = host.limiters
    const since = host.clock.monotonic()
    const limitAgain = host.noteLimits(keys)
    const asked: Asked[] = []
    let [restKeys, restCosts] = [keys, costs]
    let rejected = false
    while (asking.length > 0 && !rejected) {
      const { limiters } = host
      const ask = async (i: number): Promise<Asked> => {
        const limiter = limiters[i] as Limiter
        const key = boundedOnce(restKeys[i] as string)
        const cost = host.costOf(restCosts[i], i)
        const waiting = this.#begin(limiter, key, cost, since)
        const reserved = await waiting.reservations.reserve(waiting, host.clock.monotonic())
        this.#waiting.delete(waiting)
        if (this.#waiting.size === 0) this.#alarm.stop()
        return { limiter, key, cost, reserved }
      }
      asked.push(...(await Promise.all(asking.map(ask))))
      limitAgain()
      rejected = asked.some(({ reserved }) => reserved?.count === 0)
      // The other policies decide only now, because their counts may have changed during the wait. `update` may have moved them.
      const rest = host.limiters.map((limiter) => {
        const place = before.indexOf(limiter)
        return place < 0 || asked.some((ask) => ask.limiter === limiter && ask.reserved?.count === 1) ? undefined : place
      })
      restKeys = rest.map((place) => (place === undefined ? undefined : keys[place]))
      restCosts = rest.map((place) => (place === undefined ? 1 : (costs[place] as number)))
      const isNew = (i: number) => asked.every(({ limiter }) => limiter !== host.limiters[i])
      asking = this.needed(restKeys, restCosts, placesOf(rest)).filter(isNew)
    }
    const decision =
      others === undefined || rejected
        ? host.decide(restKeys, restCosts, !rejected)
        : await others.decide(restKeys, restCosts, placesOf(restKeys), restKeys.length, opens)
    const now = host.clock.monotonic()
    const allowed = !rejected && decision.allowed
    const parts = [...decision.parts] as PolicyDecision[]
    for (const { limiter, key, cost, reserved } of asked) {
      // A key that does not fit into the table uses the shared counter.
      const slot = limiter.locate(key, now)
      const counted = slot < 0 ? key : (limiter.table.keys[slot] as string)
      if (reserved?.count === 1) {
        const { ordinal = limiter.cell.ordinal } = reserved
        if (!allowed) limiter.meter.refund(counted, ordinal, cost, now)
        parts.push(reservedPart(limiter, slot, key, allowed ? cost : 0, ordinal, now))
      } else if (reserved !== undefined) {
        const at = parts.findIndex((part) => part.policy?.id === limiter.policy.id)
        if (at >= 0) parts.splice(at, 1)
        parts.push(slot < 0 ? partOf(limiter, NO_SLOT, key, cost, now, false, true) : reject(limiter, slot, key, cost, now))
      }
    }
    const order = new Map(host.limiters.map(({ policy }, i) => [policy.id, i]))
    const place = ({ policy }: PolicyDecision) => (policy === undefined ? 0 : (order.get(policy.id) ?? 0))
    return combined(parts.sort((a, b) => place(a) - place(b)))
  }

  /** @param since when the request came: for all of its policies together it waits no longer than for one */
  #begin(limiter: Limiter, key: string, units: number, since: number): Waiting {
    const { storeTimeout } = limiter.policy
    const endsAt = since + storeTimeout
    const waiting = {
      slot: limiter.locate(key),
      key,
      costs: [units],
      units,
      given: limiter.givenTo(key),
      storeTimeout,
      reservations: limiter.meter.reservations as StoreReservations,
      endsAt,
    }
    this.#waiting.add(waiting)
    this.#alarm.setBy(endsAt)
    return waiting
  }

  #expire(): void {
    const now = this.#host.clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const one of this.#waiting) {
      if (one.endsAt <= now) one.reservations.abandon?.(one)
      else next = Math.min(next, one.endsAt)
    }
    this.#alarm.set(next)
  }
}

function placesOf(list: readonly unknown[]): number[] {
  return list.map((_, place) => place)
}
