import { ROUNDING } from '../../algorithms/bucket/step.ts'
import { drainTime } from '../../algorithms/drain-time.ts'
import type { Booking } from '../../algorithms/meter.ts'
import { LEASE } from '../../report/stats.ts'
import type { Cell } from '../../store/contract.ts'
import { startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../gated-meter.ts'
import type { BucketKey } from './key.ts'
import { Places } from './places.ts'
import type { BucketRecords } from './records.ts'
import type { StorePolicies } from './store-policies.ts'

/** Shortest time between two asks of a key, in milliseconds: who comes meanwhile is asked for with the next one. */
const SPACING = 5

/** What those that wait may do to a bucket. */
interface BookedMeter extends GatedMeter {
  /** Units are given back. */
  lower(slot: number, key: BucketKey, units: number, now: number): void
}

/**
 * Places of requests that wait. Their units are counted ahead, as if they had been allowed when they were asked for: the level that the store
 * answers with tells when the last of them has run in. Whoever asks later finds them in the bucket, at whatever node; so no two
 * nodes get the same place, and to ask twice changes nothing. An ask whose answer is lost is given back, and made anew.
 */
export class Bookings implements Booking {
  serving = false
  readonly #meter: BookedMeter
  readonly #records: BucketRecords
  readonly #policies: StorePolicies

  constructor(meter: BookedMeter, records: BucketRecords, policies: StorePolicies) {
    this.#meter = meter
    this.#records = records
    this.#policies = policies
  }

  want(slot: number, units: number, first: number, now: number): void {
    if (units <= 0 && this.#records.find(slot)?.places === undefined) return
    const key = this.#records.refresh(slot, now)
    const places = (key.places ??= new Places())
    places.wanted = Math.max(0, units)
    places.first = Math.min(first, places.wanted)
    const over = places.cut()
    if (over > 0) this.#meter.lower(slot, key, over, now)
    if (places.wanted === 0 && places.asked === 0) key.places = undefined
    else this.#askSoon(slot, key, places, now)
  }

  asks(slot: number): boolean {
    return this.#tells(this.#records.find(slot))
  }

  bookedOf(slot: number): number {
    const places = this.#records.find(slot)?.places
    return places === undefined ? 0 : places.units + places.asked
  }

  soonest(slot: number, units: number, now: number): number | undefined {
    const key = this.#records.find(slot)
    if (key !== undefined && !this.#tells(key)) return undefined
    return drainTime(
      this.#levelOfOthers(slot, now) + units - this.#records.most(slot),
      this.#records.paces.of(slot),
      this.#meter.policy.interval,
    )
  }

  /**
   * Whether a request may go that waits and has a place, or waits for one; undefined where it goes as any other.
   */
  mayGo(slot: number, cost: number, now: number): boolean | undefined {
    const key = this.#records.find(slot)
    if (key?.places === undefined) return undefined
    const { places } = key
    if (this.#has(places, cost)) return places.goesAt(cost, this.#each(slot)) <= now
    return places.asked > 0 && this.#tells(key) ? false : undefined
  }

  /** Milliseconds until it may, at the soonest; undefined where it goes as any other. */
  opensIn(slot: number, cost: number, now: number): number | undefined {
    const key = this.#records.find(slot)
    if (key?.places === undefined) return undefined
    const { places } = key
    if (this.#has(places, cost)) return Math.max(0, places.goesAt(cost, this.#each(slot)) - now)
    return (places.asked > 0 || places.units > 0) && this.#tells(key) ? this.soonest(slot, cost, now) : undefined
  }

  /** A request takes the first places. False for one that has none. */
  take(slot: number, cost: number): boolean {
    const places = this.#records.find(slot)?.places
    if (places === undefined || !this.#has(places, cost)) return false
    places.take(cost, this.#each(slot))
    return true
  }

  /** Counts the units that places are to be asked for, just before the key's counts are sent. */
  ask(slot: number, key: BucketKey, now: number): void {
    const { places } = key
    if (places === undefined || now < places.askedAt + SPACING || !this.#tells(key)) return
    const units = places.missing(now, this.#each(slot))
    if (units === 0) return
    const { levels } = this.#records
    const level = levels.at(slot, now)
    key.cells.add(this.#meter.ordinal, units, level, this.#policies.spans(this.#records.paces.of(slot)))
    key.forecast.add(units)
    levels.set(slot, level + units, now)
    places.ask(units, now)
  }

  /**
   * The store has answered, after these units and those before them were counted.
   *
   * @param sent when it was asked
   */
  answered(slot: number, key: BucketKey, cell: Cell | undefined, sent: number, now: number): void {
    const { places } = key
    if (places === undefined) return
    if (places.asked > 0 && sent >= places.askedAt) {
      if (cell?.level === undefined) {
        this.failed(slot, key, now)
        return
      }
      const { time, storePolicy } = this.#meter
      const then = time.monotonicAt(startOf(cell.ordinal, storePolicy.width))
      places.answer(then + (cell.level - places.asked - this.#records.most(slot)) * this.#each(slot), now)
      const over = places.cut()
      if (over > 0) this.#meter.lower(slot, key, over, now)
      if (places.wanted === 0) key.places = undefined
      this.#meter.site.freed(slot)
    }
    this.#askSoon(slot, key, places, now)
  }

  /** Nobody knows whether the store has heard of the units that were asked for: they are given back, which holds in both cases. */
  failed(slot: number, key: BucketKey, now: number): void {
    const { places } = key
    if (places === undefined || places.asked === 0) return
    const units = places.asked
    places.asked = 0
    this.#meter.lower(slot, key, units, now)
    this.#meter.site.freed(slot)
  }

  #askSoon(slot: number, key: BucketKey, places: Places, now: number): void {
    if (places.missing(now, this.#each(slot)) > 0 && this.#tells(key))
      this.#meter.wantExchange(slot, Math.max(now, places.askedAt + SPACING), LEASE)
  }

  /** Whether there is somebody to share with, and the store is there to be asked. */
  #tells(key: BucketKey | undefined): boolean {
    const { exchange, nodes, storeAway } = this.#meter
    return nodes > 1 && exchange.connected && !storeAway && key?.away !== true && key?.guess === undefined
  }

  #has({ units }: Places, cost: number): boolean {
    return units > 0 && units >= cost * (1 - ROUNDING)
  }

  /** What is in the bucket but what this node's places fill it with. */
  #levelOfOthers(slot: number, now: number): number {
    return this.#records.levels.at(slot, now) - this.bookedOf(slot)
  }

  /** Milliseconds between two places. */
  #each(slot: number): number {
    return drainTime(1, this.#records.paces.of(slot), this.#meter.policy.interval)
  }
}
