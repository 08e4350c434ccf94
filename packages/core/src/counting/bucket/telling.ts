import { baseOf, DUE, GATE, IN_FLIGHT } from '../../keys/key-table.ts'
import { COUNTDOWN, HELLO, PROOF } from '../../report/stats.ts'
import type { GatedMeter } from '../gated-meter.ts'
import type { BucketKey } from './key.ts'
import { dueAt, LEAST_PART, SOFT_PART, softAge, spreadOver } from './pace.ts'
import type { BucketRecords } from './records.ts'
import type { StorePolicies } from './store-policies.ts'

/** Unsent units are sent at this part of the time that a bucket takes to drain. */
const OLD = 0.9

/** Milliseconds between two syncs of a key while there are no other processes: a new one gets its counts soon enough. */
const ALONE = 15

/** Decides when a key is synced: early if other processes need its counts, and not at all if they can't matter. */
export class Telling {
  readonly #meter: GatedMeter
  readonly #records: BucketRecords
  readonly #policies: StorePolicies

  constructor(meter: GatedMeter, records: BucketRecords, policies: StorePolicies) {
    this.#meter = meter
    this.#records = records
    this.#policies = policies
  }

  /** Whether a key waits for no sync, and none is in flight except one whose answer is late: units sent twice count once. */
  free(slot: number, key: BucketKey, now: number): boolean {
    const { flags } = this.#meter.table
    if (((flags[slot] as number) & (IN_FLIGHT | DUE)) === IN_FLIGHT && key.isLate(now)) flags[slot] = (flags[slot] as number) & ~IN_FLIGHT
    return ((flags[slot] as number) & (IN_FLIGHT | DUE)) === 0
  }

  /** A request is allowed during a sync: check again before many more are. */
  lookSoon(slot: number): void {
    if (((this.#meter.table.flags[slot] as number) & DUE) !== 0) return
    this.#meter.table.fields[baseOf(slot) + GATE] = Math.max(1, (LEAST_PART * this.#records.most(slot)) / this.#meter.nodes)
  }

  /** A request is allowed: requests a sync, or sets how many units need no slow check. */
  countDown(slot: number, key: BucketKey, level: number, cost: number, now: number): void {
    const unsent = key.cells.unsent()
    const due = this.#dueAt(slot, key, level, unsent, now)
    if (unsent + cost >= due || key.hello) {
      const at = this.#meter.nodes === 1 ? Math.max(now, key.sentAt + ALONE) : now
      this.#meter.wantExchange(slot, at, key.hello ? HELLO : COUNTDOWN)
    } else this.#meter.table.fields[baseOf(slot) + GATE] = due - unsent
  }

  /** Unsent units at which a key is synced. */
  #dueAt(slot: number, key: BucketKey, level: number, unsent: number, now: number): number {
    const { most, drain } = this.#records.shape(slot)
    const nodes = spreadOver(key.share, this.#meter.nodes)
    return dueAt({ most, level, bare: key.forecast.bare(now, drain), others: key.forecast.others(now), unsent, nodes })
  }

  /** New counts have arrived: units that were too few to be sent may now be worth a sync. */
  lookAtNews(slot: number, key: BucketKey, now: number): void {
    const meter = this.#meter
    const unsent = key.cells.unsent()
    if (unsent === 0 || meter.exchange.storeDown || !this.free(slot, key, now)) return
    const level = this.#records.levels.at(slot, now)
    if (level + 1 > this.#records.most(slot)) meter.wantExchange(slot, now, PROOF)
    else if (!key.closed(meter.site.limitOf(slot), now) && unsent >= 1 && unsent >= this.#dueAt(slot, key, level, unsent, now))
      meter.wantExchange(slot, now, COUNTDOWN)
  }

  /** Sends the demand too while requests are allowed at random, even if none is allowed. */
  softly(slot: number, key: BucketKey, unsent: number, now: number): void {
    const meter = this.#meter
    if (!this.free(slot, key, now)) return
    const shape = this.#records.shape(slot)
    if (now - key.sentAt >= softAge(shape) || unsent >= (SOFT_PART * shape.most) / spreadOver(key.share, meter.nodes))
      meter.wantExchange(slot, now, COUNTDOWN)
  }

  /**
   * Whether a key's unsent units will have drained before they could matter, or can still be sent when the next span ends.
   *
   * @param soon they can't wait for the next span's end
   */
  quiet(slot: number, key: BucketKey, unsent: number, now: number, soon = false): boolean {
    const { keepsAll, storePolicy, policy, ordinal, nodes } = this.#meter
    if (keepsAll) return false
    const { width } = storePolicy
    const { interval, spans } = policy
    const since = key.cells.unsentSince() ?? ordinal
    const { span } = this.#policies.spans(this.#records.paces.of(slot))
    if (!soon && (ordinal - since) * width + interval / spans < OLD * span * width) return true
    const most = this.#records.most(slot)
    return unsent * nodes < LEAST_PART * most && this.#records.levels.at(slot, now) < most / 4
  }
}
