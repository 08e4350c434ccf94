import { drainTime } from '../algorithms/drain-time.ts'
import type { Meter, MeterPolicy } from '../algorithms/meter.ts'
import type { Reserved, ReserveRequest, StoreReservations } from '../algorithms/reservations.ts'
import type { Step } from '../algorithms/step.ts'
import type { Exchange, Exchanging } from '../counting/site.ts'
import type { Question, Verdict } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import { KeyReservations } from './key-reservations.ts'
import type { CentralAsks } from './link.ts'

/** Milliseconds that a look-up for returned units may take. No request waits for it. */
const PATIENCE = 1_000

/** The policy's meter. */
interface ReservingMeter extends Exchanging {
  readonly policy: MeterPolicy
  readonly exchange: Exchange
  /** Milliseconds that the store usually takes to reply. */
  readonly roundTrip: number
  /** The local meter, with the confirmed counts. */
  readonly inner: Meter
  closedTo(slot: number, cost: number, now: number): boolean
  barred(slot: number, cost: number, now: number): boolean
  missedBy(at: number): boolean
  ask(kind: Question['kind'], key: string, slot: number, units: number, at: number): Question
  begin(now: number): void
  follow(slot: number, question: Question, verdict: Verdict, left: number, now: number): void
  counted(cost: number): void
  fly(question: Question): void
  paused(slot: number, now: number): boolean
  unreadable(question: Question, now: number): void
  land(question: Question): void
  allowsAlone(slot: number, cost: number, now: number): boolean
  addAlone(slot: number, cost: number, now: number): void
}

/** The way to the store. */
interface ReservingStore {
  readonly link: CentralAsks | undefined
  tell(question: Question): void
  look(question: Question, storeTimeout: number): Promise<Verdict | undefined>
}

/**
 * Sends one question to the store for several requests that wait for one key. It has the units of all of them, so the store counts all or
 * none. For buckets the store counts units ahead even if they don't fit yet: beyond the capacity, because their drain times are
 * predictable. Its reply shows when each request fits.
 */
export class CentralReservations implements StoreReservations {
  readonly leased = false
  readonly #meter: ReservingMeter
  readonly #step: Step | undefined
  readonly #store: ReservingStore
  /** By slot, of keys whose units were counted ahead. */
  readonly #keys = new Map<number, KeyReservations>()

  constructor(meter: ReservingMeter, step: Step | undefined, store: ReservingStore) {
    this.#meter = meter
    this.#step = step
    this.#store = store
  }

  needsStore(slot: number, cost: number, now: number): boolean {
    if (this.#store.link?.alone !== false || this.#meter.paused(slot, now)) return false
    return this.#countsAhead(slot) ? !this.#meter.barred(slot, cost, now) : !this.#meter.closedTo(slot, cost, now)
  }

  levelAhead(slot: number, now: number): number | undefined {
    if (this.#store.link?.alone !== false || !this.#countsAhead(slot) || this.#meter.paused(slot, now)) return undefined
    return this.#levelOf(slot, now)
  }

  isReturning(slot: number): boolean {
    return this.#keys.get(slot)?.busy === true
  }

  isFresh(slot: number, now: number): boolean {
    return this.#keys.get(slot)?.trusts(now) !== false
  }

  reserve(request: ReserveRequest, now: number): Promise<Reserved | undefined> {
    const { slot, key, costs, units, given, storeTimeout, most = Number.POSITIVE_INFINITY } = request
    const meter = this.#meter
    const { site } = meter
    const link = this.#store.link as CentralAsks
    const id = site.idOf(slot)
    const at = meter.exchange.time.at(now)
    const ahead = this.#countsAhead(slot)
    const question = ahead ? this.#askAhead(id, slot, units, most, at) : meter.ask('take', id, slot, units, at)
    meter.begin(now)
    meter.fly(question)
    return new Promise((resolve) => {
      const asked = link.ask([question], storeTimeout, now, (verdicts) => {
        const then = link.clock.monotonic()
        meter.land(question)
        if (then >= meter.rollAt) meter.roll(then)
        // The key may have been removed, and its slot may belong to another key.
        const here = site.findId(id)
        const verdict = verdicts?.[0]
        if (verdict === undefined) {
          if (asked.unreadable) meter.unreadable(question, then)
          // Requests that came meanwhile may have set another limit.
          const own = here < 0 ? -1 : site.table.find(key)
          if (own >= 0 && (given !== undefined || site.limited)) site.limitTo(own, given)
          // Without the store, requests are counted one by one, and each counts once for every live process.
          let fit = 0
          let counted = 0
          for (const cost of costs) {
            if (here < 0 || !meter.allowsAlone(here, cost, then)) break
            meter.addAlone(here, cost, then)
            counted += cost
            fit++
          }
          const isPart = fit > 0 && fit < costs.length
          link.decided(asked, fit === costs.length, isPart ? { ...question, kind: 'add', units: counted } : undefined)
          meter.counted(counted)
          resolve(fit > 0 ? { count: fit, left: meter.remaining(here, then), resetAfterMs: meter.resetAfterMs(here, then) } : undefined)
          return
        }
        const { allowed, resetAfterMs } = verdict
        const level = (resetAfterMs * question.limit) / meter.policy.interval
        const left = ahead ? site.most(question.limit) - level : verdict.remaining
        // How long this process will use its own reservations.
        const reserved = allowed ? Math.max(verdict.delayMs, drainTime(-left, question.limit, meter.policy.interval)) : 0
        if (here >= 0 && ahead) this.#follow(here, level, at, allowed, then + reserved, then)
        else if (here >= 0) {
          // If even the first one does not fit, the meter closes the key for its cost, which saves the next round trip.
          const [cost = units] = costs
          const rejected = !allowed && left < cost ? { ...question, units: cost } : question
          meter.follow(here, rejected, verdict, left, then)
        }
        if (allowed) meter.counted(units)
        resolve({ count: allowed ? costs.length : 0, left, resetAfterMs })
      })
    })
  }

  /** Whether the key's units can be counted ahead. */
  #countsAhead(slot: number): boolean {
    const limit = this.#meter.site.limitOf(slot)
    return this.#step?.ahead !== undefined && limit > 0 && limit < Number.POSITIVE_INFINITY
  }

  /** A question that counts units ahead, as long as the bucket has no more than `most` with them. */
  #askAhead(key: string, slot: number, units: number, most: number, at: number): Question {
    const question = this.#meter.ask('take', key, slot, units, at)
    const { id, step, parameters } = question.policy
    const ahead = this.#step?.ahead?.(parameters, Math.min(Number.MAX_SAFE_INTEGER, most)) ?? parameters
    return { ...question, policy: { id, step, parameters: ahead } }
  }

  /** Units in a key's bucket by the counts of this process, including units beyond its capacity. */
  #levelOf(slot: number, now: number): number {
    const { inner } = this.#meter
    return inner.usedOf(slot, now) + (inner.over?.(slot, now) ?? 0)
  }

  /**
   * Takes over the level of a key's bucket from the store, units counted ahead included.
   *
   * @param at when the question was sent, by the store's time
   * @param counted whether the store has counted the units of the question
   * @param own until when this process's reservations are used
   */
  #follow(slot: number, level: number, at: number, counted: boolean, own: number, now: number): void {
    const { inner, site } = this.#meter
    let reservations = this.#keys.get(slot)
    if (reservations === undefined) this.#keys.set(slot, (reservations = new KeyReservations()))
    reservations.heard(own, now)
    if (counted) reservations.counted(now + this.#time(level, slot), own, now)
    const more = level - this.#levelOf(slot, now)
    // The answer may lack units that were allowed without the store.
    if (more < 0 && this.#meter.missedBy(at)) return
    if (more < 0) inner.reset(site.keyOf(slot), slot, now)
    inner.add(slot, more < 0 ? level : more, now)
  }

  /** Returns units of a cancelled request. False if they have no reservation at the store that is still to come. */
  free(key: string, slot: number, usedAt: Ordinal, units: number, now: number): boolean {
    const reservations = usedAt > now ? this.#keys.get(slot) : undefined
    const { link } = this.#store
    if (reservations === undefined || link?.alone !== false) return false
    const meter = this.#meter
    const { exchange, site } = meter
    const id = site.idOf(slot)
    reservations.free({ usedAt, units }, this.#time(1, slot), {
      roundTrip: meter.roundTrip,
      now: () => link.clock.monotonic(),
      look: () => this.#store.look(meter.ask('take', id, slot, 0, exchange.time.at(link.clock.monotonic())), PATIENCE),
      done: () => {
        if (this.#keys.get(slot) === reservations) site.freed(slot)
      },
      giveBack: (back, until, then) => {
        if (this.#keys.get(slot) !== reservations) return
        if (then >= meter.rollAt) meter.roll(then)
        meter.inner.refund(key, Math.floor(until) as Ordinal, back, then)
        this.#store.tell(meter.ask('give-back', id, slot, back, exchange.time.at(until)))
      },
    })
    return true
  }

  forget(slot: number): void {
    this.#keys.delete(slot)
  }

  /** Milliseconds in which these units leave. */
  #time(units: number, slot: number): number {
    return drainTime(units, this.#meter.site.limitOf(slot), this.#meter.policy.interval)
  }
}
