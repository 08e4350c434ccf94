import { baseOf, GATE, KNOWN, SENT } from '../../keys/key-table.ts'
import { GLOBAL, LOCAL, type SourceIndex } from '../../report/stats.ts'
import type { Cell } from '../../store/contract.ts'
import { endOf, type Ordinal } from '../../time/intervals.ts'
import type { WindowMeter } from '../window-meter.ts'
import type { WindowRecords } from '../window-records.ts'
import type { PastCount, WindowRule } from '../window-rule.ts'

/**
 * Fixed windows with `coordination: 'periodic'`: the basic algorithm as it was published. Counts are synced only at the end of each span. A
 * returned total above the limit blocks the key in this process for the cooldown (until the interval's end if the cooldown is 0). `nodes`
 * is estimated per key from the previous interval. `own count · nodes > limit` blocks immediately, and while the store is down `span count
 * · nodes > limit/spans` does. Each process blocks for itself.
 */
export class PublishedFixedWindow implements WindowRule {
  readonly remembers: number = 0
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
    if (this.#blocked(slot, now) || (exchange.storeDown && policy.failMode === 'closed')) {
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    const most = exchange.storeDown && policy.failMode === 'open' ? Number.POSITIVE_INFINITY : this.most(slot)
    const limit = meter.site.limitOf(slot)
    fields[base + GATE] = Math.min(most, limit)
    return (fields[base + KNOWN] as number) + cost <= most && cost <= limit
  }

  /** Own units up to which `own · nodes <= limit`. */
  most(slot: number): number {
    return this.#meter.site.limitOf(slot) / (this.#records.find(slot)?.nodes ?? 1)
  }

  rejected(slot: number, cost: number, now: number): void {
    const { awayIn, exchange, ordinal, table } = this.#meter
    const own = table.fields[baseOf(slot) + KNOWN] as number
    const closed = cost <= 1 || own + 1 > this.most(slot)
    const forgiven = exchange.storeDown || ordinal <= awayIn || this.#meter.site.expecting
    if (closed && !forgiven && !this.#blocked(slot, now)) this.#blockHere(slot, ordinal, now, LOCAL)
  }

  /** Whether a block applies. Without a cooldown it is for the limit that was exceeded, and for lower ones. */
  #blocked(slot: number, now: number): boolean {
    const block = this.#meter.blocks.of(slot, now)
    if (block === undefined || block.manual || this.#meter.policy.cooldown > 0) return block !== undefined
    const active = this.#records.find(slot)
    const limit = this.#meter.site.limitOf(slot)
    return active === undefined || limit <= active.blockedFor || active.lastTotal > limit
  }

  /** Blocks a key for exceeding the limit in the interval `ordinal`: without a cooldown until that ends, which may be now. */
  #blockHere(slot: number, ordinal: Ordinal, now: number, source: SourceIndex): void {
    const { cooldown, interval } = this.#meter.policy
    const until = cooldown > 0 ? now + cooldown : this.#meter.time.monotonicAt(endOf(ordinal, interval))
    if (until <= now) return
    this.#records.at(slot).blockedFor = this.#meter.site.limitOf(slot)
    this.#meter.blocks.set(slot, until, false, source)
    this.#meter.site.blocked(this.#meter.site.keyOf(slot), until - now, 'exceeded')
  }

  quiet(): boolean {
    return false
  }

  left(slot: number, base: number): void {
    const active = this.#records.find(slot)
    const own = this.#records.own(base)
    // Everything was synced before the interval ended, so its total is known.
    if (active !== undefined && own > 0 && (this.#meter.table.fields[base + SENT] as number) >= this.#records.taken(slot, base)) {
      active.nodes = Math.max(1, active.lastTotal / own)
    }
  }

  settledLate(late: PastCount, total: number): void {
    const slot = this.#meter.table.find(late.key)
    const own = late.taken - late.given
    if (slot >= 0 && own > 0 && late.ordinal === this.#meter.ordinal - 1) {
      this.#records.at(slot).nodes = Math.max(1, total / own)
      this.#meter.recheck(slot)
    }
  }

  merge(slot: number, base: number, cell: Cell, reply: Cell, now: number): void {
    const { fields } = this.#meter.table
    const active = this.#records.at(slot)
    fields[base + SENT] = Math.max(fields[base + SENT] as number, cell.taken)
    active.givenSent = Math.max(active.givenSent, cell.given)
    active.syncedAt = now
    active.lastTotal = reply.taken - reply.given
    active.spanTaken = cell.taken
    this.#meter.recheck(slot)
    const over = active.lastTotal > this.#meter.site.limitOf(slot)
    if (over && cell.ordinal > this.#meter.awayIn && !this.#blocked(slot, now)) this.#blockHere(slot, cell.ordinal, now, GLOBAL)
  }

  byOwn(): boolean {
    return true
  }

  used(slot: number, own: number): number {
    const active = this.#records.find(slot)
    return active === undefined ? own : Math.max(own, active.lastTotal + this.#meter.unsyncedOf(slot))
  }

  /** The key write at a span's end failed, or was not even tried. */
  spanUnsent(slot: number, base: number, now: number): void {
    const active = this.#records.at(slot)
    const taken = this.#records.taken(slot, base)
    const count = taken - active.spanTaken
    active.spanTaken = taken
    if (this.#meter.policy.failMode === 'open' || this.#blocked(slot, now)) return
    if (count * active.nodes > this.#meter.site.limitOf(slot) / this.#meter.policy.spans)
      this.#blockHere(slot, this.#meter.ordinalOf(base), now, LOCAL)
  }
}
