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

/** Milliseconds between two requests for a key's reservations: requests that come meanwhile are part of the next one. */
const SPACING = 5

/** A meter whose waiting requests get reservations. */
interface BookedMeter extends GatedMeter {
  /** Returns units. */
  lower(slot: number, key: BucketKey, units: number, now: number): void
}

/**
 * Reservations for waiting requests. Their units are counted ahead, as if they were allowed when they are requested: the level in the
 * store's answer shows when the last of them has drained. Later requests of all processes find them in the bucket, so no time is reserved
 * twice, and sending them twice changes nothing. If an answer is lost, the units are returned and requested again.
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
   * Whether a waiting request with a reservation, or with a requested one, may go; undefined if it is decided as any other.
   */
  mayGo(slot: number, cost: number, now: number): boolean | undefined {
    const key = this.#records.find(slot)
    if (key?.places === undefined) return undefined
    const { places } = key
    if (this.#has(places, cost)) return places.goesAt(cost, this.#each(slot)) <= now
    return places.asked > 0 && this.#tells(key) ? false : undefined
  }

  /** Milliseconds until it may go, at the soonest; undefined if it is decided as any other. */
  opensIn(slot: number, cost: number, now: number): number | undefined {
    const key = this.#records.find(slot)
    if (key?.places === undefined) return undefined
    const { places } = key
    if (this.#has(places, cost)) return Math.max(0, places.goesAt(cost, this.#each(slot)) - now)
    return (places.asked > 0 || places.units > 0) && this.#tells(key) ? this.soonest(slot, cost, now) : undefined
  }

  /** Uses the first reservations for a request. False without any. */
  take(slot: number, cost: number): boolean {
    const places = this.#records.find(slot)?.places
    if (places === undefined || !this.#has(places, cost)) return false
    places.take(cost, this.#each(slot))
    return true
  }

  /** Counts the units to reserve, just before the key's counts are sent. */
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
   * The store has answered, and has counted these units and those before them.
   *
   * @param sent when the sync was sent
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

  /** The store may or may not have counted the requested units: they are returned, which is correct in both cases. */
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

  /** Whether there are other processes, and the store is up. */
  #tells(key: BucketKey | undefined): boolean {
    const { exchange, nodes, storeAway } = this.#meter
    return nodes > 1 && exchange.connected && !storeAway && key?.away !== true && key?.guess === undefined
  }

  #has({ units }: Places, cost: number): boolean {
    return units > 0 && units >= cost * (1 - ROUNDING)
  }

  /** The level of the bucket without the units that this process reserved. */
  #levelOfOthers(slot: number, now: number): number {
    return this.#records.levels.at(slot, now) - this.bookedOf(slot)
  }

  /** Milliseconds between two units. */
  #each(slot: number): number {
    return drainTime(1, this.#records.paces.of(slot), this.#meter.policy.interval)
  }
}
