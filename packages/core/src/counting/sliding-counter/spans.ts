import { slackOf } from '../../algorithms/whole-wait.ts'
import { baseOf, GATE, KNOWN, OTHERS, SENT } from '../../keys/key-table.ts'
import type { Cell, TotalAnnouncement } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { WindowMeter } from '../window-meter.ts'
import type { WindowRecords } from '../window-records.ts'
import type { PastCount, WindowRule } from '../window-rule.ts'

/**
 * `slidingCounter()`: the weighted counter of two fixed windows that is well known from single stores (Cloudflare 2017, "How we built rate
 * limiting capable of scaling to millions of domains"): a request is rejected if
 *
 *     previous · (1 − elapsed) + current + cost > limit
 *
 * with `elapsed` the part of the running interval that has passed. It assumes that the previous interval's requests came evenly. In an
 * attack that doesn't, up to nearly twice the limit is allowed in one interval's length. Totals are synced only at the end of each span.
 */
export class PublishedSlidingCounter implements WindowRule {
  /** Units of the interval before the running one are still part of the sum. */
  readonly remembers: number = 1
  readonly #meter: WindowMeter
  readonly #records: WindowRecords

  constructor(meter: WindowMeter) {
    this.#meter = meter
    this.#records = meter.records
  }

  allowsSlowly(slot: number, cost: number, now: number): boolean {
    const meter = this.#meter
    const { exchange, policy } = meter
    const { fields } = meter.table
    const base = baseOf(slot)
    const away = exchange.storeDown ? policy.failMode : undefined
    if (meter.blocks.of(slot, now) !== undefined || away === 'closed') {
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    const most = away === 'open' ? Number.POSITIVE_INFINITY : this.most(slot, now)
    // It grows as time passes, so units below it now stay below it. Negative gates have a meaning of their own.
    const limit = meter.site.limitOf(slot)
    fields[base + GATE] = Math.max(0, Math.min(most, limit))
    return (fields[base + KNOWN] as number) + cost <= most + slackOf(limit) && cost <= limit
  }

  /** Units that fit into the running interval at this moment. */
  most(slot: number, now: number): number {
    return this.#meter.site.limitOf(slot) - this.#previous(slot) * (1 - this.#elapsed(now))
  }

  byOwn(slot: number): boolean {
    return this.#meter.table.fields[baseOf(slot) + OTHERS] === 0
  }

  used(slot: number, units: number, now: number): number {
    return this.usedBefore(this.#previous(slot), now) + units
  }

  usedBefore(units: number, now: number): number {
    return units * (1 - this.#elapsed(now))
  }

  emptyAfter(slot: number, end: number): number {
    if (this.#meter.knownOf(slot) > 0) return end + this.#meter.policy.interval
    return this.#previous(slot) > 0 ? end : 0
  }

  #previous(slot: number): number {
    return this.#records.find(slot)?.previous ?? 0
  }

  #elapsed(now: number): number {
    return Math.min(1, Math.max(0, 1 - this.#meter.tillEnd(now) / this.#meter.policy.interval))
  }

  rejected(slot: number, cost: number, now: number): void {
    const { awayIn, blocks, exchange, ordinal, policy, table } = this.#meter
    const known = table.fields[baseOf(slot) + KNOWN] as number
    const closed = cost <= 1 || known + 1 > this.most(slot, now)
    const forgiven = exchange.storeDown || ordinal <= awayIn || this.#meter.site.expecting
    if (policy.cooldown > 0 && closed && !forgiven && this.#meter.blocks.of(slot, now) === undefined) blocks.startCooldown(slot, now, now)
  }

  /** When the weighted sum is low enough, if no other request comes. */
  opensIn(slot: number, cost: number, now: number): number {
    const { failMode, interval } = this.#meter.policy
    if (failMode === 'closed' && this.#meter.decidesAlone(slot)) return this.#meter.tillEnd(now)
    const limit = this.#meter.site.limitOf(slot)
    const known = this.#meter.table.fields[baseOf(slot) + KNOWN] as number
    const room = limit - Math.min(cost, limit) + slackOf(limit) / 2
    const previous = this.#previous(slot)
    if (known <= room && previous > 0) return Math.max(0, this.#meter.tillEnd(now) - ((room - known) / previous) * interval)
    return this.#meter.tillEnd(now) + (known > 0 ? Math.max(0, 1 - room / known) * interval : 0)
  }

  quiet(): boolean {
    return false
  }

  left(slot: number, base: number, ordinal: Ordinal): void {
    const known = this.#meter.table.fields[base + KNOWN] as number
    if (ordinal === this.#meter.ordinal - 1 && known > 0) this.#records.at(slot).previous = known
    else if (this.#records.find(slot) !== undefined) this.#records.at(slot).previous = 0
  }

  settledLate(late: PastCount, total: number): void {
    const slot = this.#meter.table.find(late.key)
    if (slot < 0 || late.ordinal !== this.#meter.ordinal - 1) return
    // Whatever the store reports, this process's own units were taken.
    this.#records.at(slot).previous = Math.max(total, late.taken - late.given)
    this.#meter.recheck(slot)
  }

  merge(slot: number, base: number, cell: Cell, reply: Cell, now: number): void {
    const { fields } = this.#meter.table
    fields[base + SENT] = Math.max(fields[base + SENT] as number, cell.taken)
    const active = this.#records.find(slot)
    if (active !== undefined) {
      active.givenSent = Math.max(active.givenSent, cell.given)
      active.syncedAt = now
    }
    const others = Math.max(0, reply.taken - reply.given - (cell.taken - cell.given))
    if (reply.given > 0) this.#records.setOthers(base, others)
    else this.#records.raiseOthers(base, others)
    this.#meter.recheck(slot)
  }

  announced(announcement: TotalAnnouncement, now: number): void {
    this.#meter.hear(announcement, now)
  }
}
