import { drainTime } from '../algorithms/drain-time.ts'
import type { Meter, MeterPolicy } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import type { Step } from '../algorithms/step.ts'
import type { Exchange } from '../counting/site.ts'
import type { Question, Verdict } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { CentralAsks } from './link.ts'
import { KeyReservations } from './reservations.ts'

/** Milliseconds that a look-up for returned units may take. No request waits for it. */
const PATIENCE = 1_000

/** The meter whose keys' units are counted ahead. */
interface AheadMeter {
  /** The local meter, with the confirmed counts. */
  readonly inner: Meter
  readonly site: SharedSite
  readonly policy: MeterPolicy
  readonly exchange: Exchange
  readonly roundTrip: number
  readonly rollAt: number
  roll(now: number): void
  missedBy(at: number): boolean
  ask(kind: Question['kind'], key: string, slot: number, units: number, at: number): Question
}

/** The way to the store. */
interface AheadStore {
  readonly link: CentralAsks | undefined
  tell(question: Question): void
  look(question: Question, storeTimeout: number): Promise<Verdict | undefined>
}

/**
 * Units that the store counts ahead for waiting requests: they go beyond a bucket's capacity, because their drain times are predictable.
 */
export class CountedAhead {
  readonly #meter: AheadMeter
  readonly #step: Step | undefined
  readonly #store: AheadStore
  readonly #reservations = new Map<number, KeyReservations>()

  constructor(meter: AheadMeter, step: Step | undefined, store: AheadStore) {
    this.#meter = meter
    this.#step = step
    this.#store = store
  }

  /** Whether the key's units can be counted ahead. */
  counts(slot: number): boolean {
    const limit = this.#meter.site.limitOf(slot)
    return this.#step?.ahead !== undefined && limit > 0 && limit < Number.POSITIVE_INFINITY
  }

  /** A question that counts units ahead, as long as the bucket has no more than `most` with them. */
  ask(key: string, slot: number, units: number, most: number, at: number): Question {
    const question = this.#meter.ask('take', key, slot, units, at)
    const { id, step, parameters } = question.policy
    const ahead = this.#step?.ahead?.(parameters, Math.min(Number.MAX_SAFE_INTEGER, most)) ?? parameters
    return { ...question, policy: { id, step, parameters: ahead } }
  }

  /** Units in a key's bucket as far as this process knows, including those beyond its capacity. */
  levelOf(slot: number, now: number): number {
    const { inner } = this.#meter
    return inner.usedOf(slot, now) + (inner.over?.(slot, now) ?? 0)
  }

  /** Whether units are coming back. */
  takesBack(slot: number): boolean {
    return this.#reservations.get(slot)?.busy === true
  }

  /** Whether the store's last answer about the key is still valid. */
  trusts(slot: number, now: number): boolean {
    return this.#reservations.get(slot)?.trusts(now) !== false
  }

  /**
   * Takes over the level of a key's bucket from the store, units counted ahead included.
   *
   * @param at when the question was sent, by the store's time
   * @param counted whether the store has counted the units of the question
   * @param own until when this process's reservations are used
   */
  follow(slot: number, level: number, at: number, counted: boolean, own: number, now: number): void {
    const { inner, site } = this.#meter
    let reservations = this.#reservations.get(slot)
    if (reservations === undefined) this.#reservations.set(slot, (reservations = new KeyReservations()))
    reservations.heard(own, now)
    if (counted) reservations.counted(now + this.#time(level, slot), own, now)
    const more = level - this.levelOf(slot, now)
    // The answer may lack units that were allowed without the store.
    if (more < 0 && this.#meter.missedBy(at)) return
    if (more < 0) inner.reset(site.keyOf(slot), slot, now)
    inner.add(slot, more < 0 ? level : more, now)
  }

  /** Returns units of a cancelled request. False if they have no reservation at the store that is still to come. */
  free(key: string, slot: number, usedAt: Ordinal, units: number, now: number): boolean {
    const reservations = usedAt > now ? this.#reservations.get(slot) : undefined
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
        if (this.#reservations.get(slot) === reservations) site.freed(slot)
      },
      giveBack: (back, until, then) => {
        if (this.#reservations.get(slot) !== reservations) return
        if (then >= meter.rollAt) meter.roll(then)
        meter.inner.refund(key, Math.floor(until) as Ordinal, back, then)
        this.#store.tell(meter.ask('give-back', id, slot, back, exchange.time.at(until)))
      },
    })
    return true
  }

  forget(slot: number): void {
    this.#reservations.delete(slot)
  }

  /** Milliseconds in which these units leave. */
  #time(units: number, slot: number): number {
    return drainTime(units, this.#meter.site.limitOf(slot), this.#meter.policy.interval)
  }
}
