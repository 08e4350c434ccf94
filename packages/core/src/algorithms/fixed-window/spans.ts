import { baseOf, GATE, KNOWN, SENT, TAG } from '../../keys/key-table.ts'
import { GLOBAL, LOCAL, type SourceIndex } from '../../report/stats.ts'
import type { Cell } from '../../store/contract.ts'
import { endOf, type Ordinal } from '../../time/intervals.ts'
import type { Refusal } from '../meter.ts'
import type { LateCount } from '../shared/late-counts.ts'
import type { Exchange, SharedSite } from '../shared/site.ts'
import { FixedWindowMeter } from './exchanged.ts'

/**
 * Fixed windows with `coordination: 'spans'`: the basic algorithm as it was published. Counts are exchanged at the end of each span
 * only; a returned total above the limit blocks the key at this node for the cooldown (until the interval's end where
 * the cooldown is 0); `nodes` is estimated per key from the previous interval; `own count · nodes > limit` blocks at
 * once; while the store is away `span count · nodes > limit/spans` does. Blocks are this node's own.
 */
export class PublishedFixedWindow extends FixedWindowMeter {
  override readonly jitter: boolean = false

  constructor(site: SharedSite, exchange: Exchange) {
    super(site, exchange, exchange.localTime, false)
  }

  protected override reconsider(slot: number, cost: number, now: number): boolean {
    const base = baseOf(slot)
    const fields = this.table.fields
    if (fields[base + TAG] !== this.tag) this.refresh(slot, now)
    if (this.blockOf(slot, now) !== undefined || (this.exchange.degraded && this.policy.degraded === 'closed')) {
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    const most = this.exchange.degraded && this.policy.degraded === 'open' ? Number.POSITIVE_INFINITY : this.#most(slot)
    const limit = this.site.limitOf(slot)
    fields[base + GATE] = Math.min(most, limit)
    return (fields[base + KNOWN] as number) + cost <= most && cost <= limit
  }

  /** Own units up to which `own · nodes <= limit`. */
  #most(slot: number): number {
    return this.site.limitOf(slot) / (this.activeOf(slot)?.nodes ?? 1)
  }

  override remaining(slot: number): number {
    return Math.max(0, this.#most(slot) - (this.table.fields[baseOf(slot) + KNOWN] as number))
  }

  override refuse(slot: number, cost: number, now: number): Refusal {
    const own = this.table.fields[baseOf(slot) + KNOWN] as number
    const closed = cost <= 1 || own + 1 > this.#most(slot)
    const forgiven = this.exchange.degraded || this.ordinal <= this.amnesty
    if (closed && !forgiven && this.blockOf(slot, now) === undefined) this.#blockHere(slot, this.ordinal, now, LOCAL)
    return this.explain(slot, cost, now)
  }

  /** Blocks a key for exceeding the limit in the interval `ordinal`: without a cooldown until that is over, which may be now. */
  #blockHere(slot: number, ordinal: Ordinal, now: number, source: SourceIndex): void {
    const { cooldown, interval } = this.policy
    const until = cooldown > 0 ? now + cooldown : this.time.monotonicAt(endOf(ordinal, interval))
    if (until <= now) return
    this.blocks.set(slot, until, false, source)
    this.site.blocked(this.site.keyOf(slot), until - now, 'exceeded')
  }

  protected override quiet(): boolean {
    return false
  }

  protected override leave(slot: number, base: number, ordinal: Ordinal): void {
    super.leave(slot, base, ordinal)
    const active = this.activeOf(slot)
    const own = this.own(base)
    // Everything was exchanged before the interval was over: its total is known already.
    if (active !== undefined && own > 0 && (this.table.fields[base + SENT] as number) >= this.taken(slot, base)) {
      active.nodes = Math.max(1, active.lastTotal / own)
    }
  }

  protected override settledLate(late: Pick<LateCount, 'key' | 'ordinal' | 'taken' | 'given'>, total: number): void {
    const slot = this.table.find(late.key)
    const own = late.taken - late.given
    if (slot >= 0 && own > 0 && late.ordinal === this.ordinal - 1) {
      this.activate(slot).nodes = Math.max(1, total / own)
      this.recheck(slot)
    }
  }

  protected override merge(slot: number, base: number, cell: Cell, reply: Cell, _sent: number, now: number): void {
    const fields = this.table.fields
    const active = this.activate(slot)
    fields[base + SENT] = Math.max(fields[base + SENT] as number, cell.taken)
    active.givenSent = Math.max(active.givenSent, cell.given)
    active.flight = 0
    active.syncedAt = now
    active.lastTotal = reply.taken - reply.given
    active.spanTaken = cell.taken
    this.recheck(slot)
    const over = active.lastTotal > this.site.limitOf(slot)
    if (over && cell.ordinal > this.amnesty && this.blockOf(slot, now) === undefined) this.#blockHere(slot, cell.ordinal, now, GLOBAL)
  }

  protected override knownBy(): SourceIndex {
    return LOCAL
  }

  override usedOf(slot: number, now: number): number {
    const own = super.usedOf(slot, now)
    const active = own > 0 ? this.activeOf(slot) : undefined
    return active === undefined ? own : Math.max(own, active.lastTotal + this.unsyncedOf(slot))
  }

  /** Only what this node's own writes return counts. */
  override announced(): void {}

  /** The write at a span's end failed, or was not even tried. */
  protected override spanUnsent(slot: number, base: number, now: number): void {
    const active = this.activate(slot)
    const taken = this.taken(slot, base)
    const count = taken - active.spanTaken
    active.spanTaken = taken
    if (this.policy.degraded === 'open' || this.blockOf(slot, now) !== undefined) return
    if (count * active.nodes > this.site.limitOf(slot) / this.policy.spans) this.#blockHere(slot, this.ordinalOf(base), now, LOCAL)
  }
}
