import { drainTime } from '../algorithms/drain-time.ts'
import type { Meter, MeterPolicy } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import type { Step } from '../algorithms/step.ts'
import type { Exchange } from '../counting/site.ts'
import type { Question, Verdict } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { CentralAsks } from './link.ts'
import { KeyPlaces } from './places.ts'

/** Nobody waits for an answer about places that are free again; milliseconds. */
const PATIENCE = 1_000

/** The meter whose keys' units are counted ahead. */
interface AheadMeter {
  /** What is known here. */
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

/** Units that the store counts ahead for requests that wait: beyond what a key's bucket holds, as it is known when they will have run in. */
export class CountedAhead {
  readonly #meter: AheadMeter
  readonly #step: Step | undefined
  readonly #store: AheadStore
  readonly #places = new Map<number, KeyPlaces>()

  constructor(meter: AheadMeter, step: Step | undefined, store: AheadStore) {
    this.#meter = meter
    this.#step = step
    this.#store = store
  }

  /** Whether units of the key can be. */
  counts(slot: number): boolean {
    const limit = this.#meter.site.limitOf(slot)
    return this.#step?.ahead !== undefined && limit > 0 && limit < Number.POSITIVE_INFINITY
  }

  /** A question that counts units ahead, as long as the bucket holds no more than `most` with them. */
  ask(key: string, slot: number, units: number, most: number, at: number): Question {
    const question = this.#meter.ask('take', key, slot, units, at)
    const { id, step, parameters } = question.policy
    const ahead = this.#step?.ahead?.(parameters, Math.min(Number.MAX_SAFE_INTEGER, most)) ?? parameters
    return { ...question, policy: { id, step, parameters: ahead } }
  }

  /** What is in a key's bucket as far as this node knows, beyond what it holds too. */
  levelOf(slot: number, now: number): number {
    const { inner } = this.#meter
    return inner.usedOf(slot, now) + (inner.over?.(slot, now) ?? 0)
  }

  /** Whether units are coming back. */
  takesBack(slot: number): boolean {
    return this.#places.get(slot)?.busy === true
  }

  /** Whether what is known is to be relied on. */
  trusts(slot: number, now: number): boolean {
    return this.#places.get(slot)?.trusts(now) !== false
  }

  /**
   * The store said how much is in a key's bucket, what was counted ahead included.
   *
   * @param at when it was asked, by its time
   * @param counted whether it has counted what it was asked for
   * @param own until when places of this node are used
   */
  follow(slot: number, level: number, at: number, counted: boolean, own: number, now: number): void {
    const { inner, site } = this.#meter
    let places = this.#places.get(slot)
    if (places === undefined) this.#places.set(slot, (places = new KeyPlaces()))
    places.heard(own, now)
    if (counted) places.counted(now + this.#time(level, slot), own, now)
    const more = level - this.levelOf(slot, now)
    // Of what was allowed without it the store does not know yet.
    if (more < 0 && this.#meter.missedBy(at)) return
    if (more < 0) inner.reset(site.keyOf(slot), slot, now)
    inner.add(slot, more < 0 ? level : more, now)
  }

  /** Units go no more. False where that is not of a place that is still to come, by the store. */
  free(key: string, slot: number, place: Ordinal, units: number, now: number): boolean {
    const places = place > now ? this.#places.get(slot) : undefined
    const { link } = this.#store
    if (places === undefined || link?.alone !== false) return false
    const meter = this.#meter
    const { exchange, site } = meter
    const id = site.idOf(slot)
    places.free({ place, units }, this.#time(1, slot), {
      roundTrip: meter.roundTrip,
      now: () => link.clock.monotonic(),
      look: () => this.#store.look(meter.ask('take', id, slot, 0, exchange.time.at(link.clock.monotonic())), PATIENCE),
      done: () => {
        if (this.#places.get(slot) === places) site.freed(slot)
      },
      giveBack: (back, until, then) => {
        if (this.#places.get(slot) !== places) return
        if (then >= meter.rollAt) meter.roll(then)
        meter.inner.refund(key, Math.floor(until) as Ordinal, back, then)
        this.#store.tell(meter.ask('give-back', id, slot, back, exchange.time.at(until)))
      },
    })
    return true
  }

  forget(slot: number): void {
    this.#places.delete(slot)
  }

  /** Milliseconds in which so many units leave. */
  #time(units: number, slot: number): number {
    return drainTime(units, this.#meter.site.limitOf(slot), this.#meter.policy.interval)
  }
}
