import type { Reservation, Reserving } from '../algorithms/meter.ts'
import { boundedOnce } from '../keys/key-text.ts'
import { Alarm } from '../time/alarm.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Asking, AskingHost, Keys } from './asking.ts'
import { partOf, reject, reservedPart } from './decide-one.ts'
import type { Decision, PolicyDecision } from './decision.ts'
import { combined } from './levels.ts'
import { type Limiter, NO_SLOT } from './limiter.ts'

/** A policy's call to the store: whether units were granted (undefined after a timeout), and in which interval. */
interface Asked {
  readonly limiter: Limiter
  readonly key: string
  readonly cost: number
  readonly granted: boolean | undefined
  readonly ordinal: Ordinal
}

/** Decides by policies that take quota ahead. A request without quota here waits for a grant of the store. */
export class WaitingDecisions {
  readonly #host: AskingHost
  readonly #pending = new Set<Pending>()
  /** One timer for all waiting requests. */
  readonly #alarm: Alarm

  constructor(host: AskingHost) {
    this.#host = host
    this.#alarm = new Alarm(host.clock, () => this.#expire())
  }

  /** The indexes of the policies that need the store. Empty if a policy rejects the request by the counts of this process. */
  policiesToAsk(keys: Keys, costs: readonly number[], places: readonly number[], applied: number = places.length): number[] {
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
      else if (!dryRun && !limiter.meter.allows(slot, cost, now)) return []
    }
    return asking
  }

  /**
   * Requests units from the store for the policies at the indexes `asking`, then decides by the others. If other requests have used up the
   * process's quota of those meanwhile, it requests that too. Each policy sends one call, and all end within its storeTimeout after the
   * request.
   *
   * @param others decides if some of the other policies need the store too
   */
  async decide(keys: Keys, costs: readonly number[], asking: readonly number[], others?: Asking): Promise<Decision> {
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
        return { limiter, key, cost, ...(await this.#ask(limiter, key, cost, since)) }
      }
      asked.push(...(await Promise.all(asking.map(ask))))
      limitAgain()
      rejected = asked.some(({ granted }) => granted === false)
      // The other policies decide only now, because their counts may have changed during the wait. `update` may have moved them.
      const rest = host.limiters.map((limiter) => {
        const place = before.indexOf(limiter)
        return place < 0 || asked.some((ask) => ask.limiter === limiter && ask.granted === true) ? undefined : place
      })
      restKeys = rest.map((place) => (place === undefined ? undefined : keys[place]))
      restCosts = rest.map((place) => (place === undefined ? 1 : (costs[place] as number)))
      const isNew = (i: number) => asked.every(({ limiter }) => limiter !== host.limiters[i])
      asking = this.policiesToAsk(restKeys, restCosts, placesOf(rest)).filter(isNew)
    }
    const decision =
      others === undefined || rejected
        ? host.decide(restKeys, restCosts, !rejected)
        : await others.decide(restKeys, restCosts, placesOf(restKeys), restKeys.length)
    const now = host.clock.monotonic()
    const allowed = !rejected && decision.allowed
    const parts = [...decision.parts] as PolicyDecision[]
    for (const { limiter, key, cost, granted, ordinal } of asked) {
      // A key that does not fit into the table uses the shared counter.
      const slot = limiter.locate(key, now)
      const counted = slot < 0 ? key : (limiter.table.keys[slot] as string)
      if (granted === true && !allowed) limiter.meter.refund(counted, ordinal, cost, now)
      if (granted === true) parts.push(reservedPart(limiter, slot, key, allowed ? cost : 0, ordinal, now))
      if (granted === false) {
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
  #ask(limiter: Limiter, key: string, cost: number, since: number): Promise<Pick<Asked, 'granted' | 'ordinal'>> {
    const { clock } = this.#host
    return new Promise((resolve) => {
      const endsAt = since + limiter.policy.storeTimeout
      const pending = new Pending(limiter, key, cost, endsAt, (granted, ordinal) => {
        this.#pending.delete(pending)
        if (this.#pending.size === 0) this.#alarm.stop()
        resolve({ granted, ordinal })
      })
      this.#pending.add(pending)
      this.#alarm.setBy(endsAt)
      const reserving = limiter.meter.reserving as Reserving
      reserving.reserve(pending, clock.monotonic())
    })
  }

  #expire(): void {
    const now = this.#host.clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const pending of this.#pending) {
      if (pending.endsAt <= now) pending.expire()
      else next = Math.min(next, pending.endsAt)
    }
    this.#alarm.set(next)
  }
}

/** A request that waits for units of one policy. */
class Pending implements Reservation {
  abandoned = false
  readonly slot: number
  readonly cost: number
  /** End of its wait, on the monotonic clock. */
  readonly endsAt: number
  readonly #limiter: Limiter
  readonly #key: string
  readonly #given: number | undefined
  readonly #answered: (granted: boolean | undefined, ordinal: Ordinal) => void

  constructor(
    limiter: Limiter,
    key: string,
    cost: number,
    endsAt: number,
    answered: (granted: boolean | undefined, ordinal: Ordinal) => void,
  ) {
    this.#limiter = limiter
    this.#key = key
    this.slot = limiter.locate(key)
    this.cost = cost
    this.endsAt = endsAt
    this.#given = limiter.givenTo(key)
    this.#answered = answered
  }

  /** Computed when it is read, because an update may change it. */
  get limit(): number {
    return this.#limiter.limitFor(this.#key, this.#given)
  }

  answer(granted: boolean | undefined, ordinal: Ordinal = this.#limiter.cell.ordinal): void {
    this.#answered(granted, ordinal)
  }

  /** Ends the wait because the store did not answer in time. */
  expire(): void {
    this.abandoned = true
    this.answer(undefined)
  }
}

function placesOf(list: readonly unknown[]): number[] {
  return list.map((_, place) => place)
}
