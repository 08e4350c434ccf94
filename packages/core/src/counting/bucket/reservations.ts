import { drained, ROUNDING } from '../../algorithms/bucket/step.ts'
import type { Reserved, ReserveRequest, StoreReservations } from '../../algorithms/reservations.ts'
import { LEASE } from '../../report/stats.ts'
import type { Cell } from '../../store/contract.ts'
import { startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../gated-meter.ts'
import type { BucketKey, Unconfirmed } from './key.ts'
import type { BucketRecords } from './records.ts'
import type { StorePolicies } from './store-policies.ts'

/** The bucket whose units are counted ahead. */
interface AheadMeter extends GatedMeter {
  /** Gives back the units that were counted last. */
  lower(slot: number, key: BucketKey, units: number, now: number): number
}

/**
 * Reservations of requests that wait for a bucket which all processes fill. Their units are counted as if they were allowed now. The level
 * that the store returns shows when the last of them fits. A process that reserves later finds them in the bucket, so no two processes
 * get the same time. Units sent twice count once. If an answer is lost, the units are given back.
 */
export class BucketReservations implements StoreReservations {
  readonly leased = false
  readonly #meter: AheadMeter
  readonly #records: BucketRecords
  readonly #policies: StorePolicies

  constructor(meter: AheadMeter, records: BucketRecords, policies: StorePolicies) {
    this.#meter = meter
    this.#records = records
    this.#policies = policies
  }

  needsStore(slot: number, _cost: number, now: number): boolean {
    return this.levelAhead(slot, now) !== undefined
  }

  levelAhead(slot: number, now: number): number | undefined {
    const { nodes, storeAway } = this.#meter
    const key = this.#records.find(slot)
    const isAlone = nodes === 1 || storeAway || key?.away === true || key?.guess !== undefined
    return isAlone || this.#meter.site.isShared(slot) ? undefined : this.#records.levels.at(slot, now)
  }

  reserve({ slot, costs, most = Number.POSITIVE_INFINITY }: ReserveRequest, now: number): Promise<Reserved | undefined> {
    const meter = this.#meter
    const { levels, paces } = this.#records
    const key = this.#records.refresh(slot, now)
    const level = levels.at(slot, now)
    let count = 0
    let units = 0
    for (const cost of costs) {
      if (level + units + cost > most * (1 + ROUNDING)) break
      units += cost
      count++
    }
    if (count === 0) return Promise.resolve({ count, left: this.#records.most(slot) - level, resetAfterMs: meter.resetAfterMs(slot, now) })
    key.cells.add(meter.ordinal, units, level, this.#policies.spans(paces.of(slot)))
    key.forecast.add(units)
    levels.set(slot, level + units, now)
    return new Promise((resolve) => {
      const { ordinal } = meter
      const confirmed = (after: number | undefined, then: number): void => {
        if (after === undefined) resolve(undefined)
        else {
          meter.allowed += units
          resolve({ count, left: this.#records.most(slot) - after, resetAfterMs: meter.resetAfterMs(slot, then), ordinal })
        }
      }
      key.unconfirmed = [...key.unconfirmed, { units, ordinal, at: now, confirmed }]
      meter.wantExchange(slot, now, LEASE)
    })
  }

  /**
   * The store has answered, after the units that were counted until `sent`.
   *
   * @param cell its level, and the time of that
   */
  answered(slot: number, key: BucketKey, cell: Cell | undefined, sent: number, now: number): void {
    if (key.unconfirmed.length === 0) return
    const here = key.unconfirmed.filter(({ at }) => at <= sent)
    key.unconfirmed = key.unconfirmed.filter(({ at }) => at > sent)
    // These were counted while the sync was in flight, and no other one may be due.
    if (key.unconfirmed.length > 0) this.#meter.wantExchange(slot, now, LEASE)
    if (here.length === 0) return
    if (cell?.level === undefined) {
      this.#giveBack(slot, key, here, now)
      return
    }
    const { time, storePolicy, policy } = this.#meter
    const then = time.monotonicAt(startOf(cell.ordinal, storePolicy.width))
    let level = drained(cell.level, now - then, this.#records.paces.of(slot), policy.interval)
    for (const one of here.toReversed()) {
      one.confirmed(level, now)
      level -= one.units
    }
  }

  /** Gives the units back, because this process can't know whether the store has them. The next sync corrects the store in both cases. */
  failed(slot: number, key: BucketKey, now: number): void {
    const all = key.unconfirmed
    if (all.length === 0) return
    key.unconfirmed = []
    this.#giveBack(slot, key, all, now)
  }

  #giveBack(slot: number, key: BucketKey, all: readonly Unconfirmed[], now: number): void {
    for (const { units, confirmed } of all) {
      this.#meter.lower(slot, key, units, now)
      confirmed(undefined, now)
    }
  }
}
