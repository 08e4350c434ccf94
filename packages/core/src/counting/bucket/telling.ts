import { baseOf, DUE, GATE, IN_FLIGHT } from '../../keys/key-table.ts'
import { COUNTDOWN, HELLO, PROOF } from '../../report/stats.ts'
import type { GatedMeter } from '../gated-meter.ts'
import type { BucketKey } from './key.ts'
import { dueAt, LEAST_PART, SOFT_PART, softAge, spreadOver } from './pace.ts'
import type { BucketRecords } from './records.ts'
import type { StorePolicies } from './store-policies.ts'

/** What is held back is sent when it is nearly so old as a bucket takes to run out. */
const OLD = 0.9

/** While there are no other nodes a key is told no more often, in milliseconds: one that comes hears of it soon enough. */
const ALONE = 15

/** When the other nodes are told of a key: early where it matters to them, and not at all where it can't. */
export class Telling {
  readonly #meter: GatedMeter
  readonly #records: BucketRecords
  readonly #policies: StorePolicies

  constructor(meter: GatedMeter, records: BucketRecords, policies: StorePolicies) {
    this.#meter = meter
    this.#records = records
    this.#policies = policies
  }

  /** Whether a key waits for no exchange, and none of it is under way but one whose answer is late: what is sent twice counts once. */
  free(slot: number, key: BucketKey, now: number): boolean {
    const { flags } = this.#meter.table
    if (((flags[slot] as number) & (IN_FLIGHT | DUE)) === IN_FLIGHT && key.isLate(now)) flags[slot] = (flags[slot] as number) & ~IN_FLIGHT
    return ((flags[slot] as number) & (IN_FLIGHT | DUE)) === 0
  }

  /** A request is allowed while an exchange is under way: looks again before much more is. */
  lookSoon(slot: number): void {
    if (((this.#meter.table.flags[slot] as number) & DUE) !== 0) return
    this.#meter.table.fields[baseOf(slot) + GATE] = Math.max(1, (LEAST_PART * this.#records.most(slot)) / this.#meter.nodes)
  }

  /** A request is allowed: asks for an exchange, or lets so many units pass without a look as need none. */
  countDown(slot: number, key: BucketKey, level: number, cost: number, now: number): void {
    const unsent = key.cells.unsent()
    const due = this.#dueAt(slot, key, level, unsent, now)
    if (unsent + cost >= due || key.hello) {
      const at = this.#meter.nodes === 1 ? Math.max(now, key.sentAt + ALONE) : now
      this.#meter.wantExchange(slot, at, key.hello ? HELLO : COUNTDOWN)
    } else this.#meter.table.fields[baseOf(slot) + GATE] = due - unsent
  }

  /** Units that the store lacks at which they are sent. */
  #dueAt(slot: number, key: BucketKey, level: number, unsent: number, now: number): number {
    const { most, drain } = this.#records.shape(slot)
    const nodes = spreadOver(key.share, this.#meter.nodes)
    return dueAt({ most, level, bare: key.forecast.bare(now, drain), others: key.forecast.others(now), unsent, nodes })
  }

  /** Something new is known: units that were too few to be sent may now be worth an exchange. */
  lookAtNews(slot: number, key: BucketKey, now: number): void {
    const meter = this.#meter
    const unsent = key.cells.unsent()
    if (unsent === 0 || meter.exchange.storeDown || !this.free(slot, key, now)) return
    const level = this.#records.levels.at(slot, now)
    if (level + 1 > this.#records.most(slot)) meter.wantExchange(slot, now, PROOF)
    else if (!key.closed(meter.site.limitOf(slot), now) && unsent >= 1 && unsent >= this.#dueAt(slot, key, level, unsent, now))
      meter.wantExchange(slot, now, COUNTDOWN)
  }

  /** While requests are let in by chance, what is asked for has to be told too, though nothing is allowed. */
  softly(slot: number, key: BucketKey, unsent: number, now: number): void {
    const meter = this.#meter
    if (!this.free(slot, key, now) || !meter.exchange.connected) return
    const shape = this.#records.shape(slot)
    if (now - key.sentAt >= softAge(shape) || unsent >= (SOFT_PART * shape.most) / spreadOver(key.share, meter.nodes))
      meter.wantExchange(slot, now, COUNTDOWN)
  }

  /**
   * What will have run out before it could matter to anybody, or can still be sent when the next span ends.
   *
   * @param soon it can't
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
