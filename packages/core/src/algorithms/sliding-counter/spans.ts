import { baseOf, GATE, KNOWN, OTHERS, SENT, TAG } from '../../keys/key-table.ts'
import { GLOBAL, LOCAL, type SourceIndex } from '../../report/stats.ts'
import type { Cell } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { FixedWindowMeter } from '../fixed-window/exchanged.ts'
import type { Refusal } from '../meter.ts'
import type { LateCount } from '../shared/late-counts.ts'
import type { Exchange, SharedSite } from '../shared/site.ts'

/**
 * `slidingCounter()`: the weighted counter of two fixed windows that is well known from
 * single stores (Cloudflare 2017, "How we built rate limiting capable of scaling to millions of domains"): a request is
 * refused when
 *
 *     previous · (1 − elapsed) + current + cost > limit
 *
 * with `elapsed` the part of the running interval that is over. It supposes that the previous interval's requests came
 * evenly; under an attack that does not, up to nearly twice the limit passes in one interval length. Totals are
 * exchanged at the end of each span only.
 */
export class PublishedSlidingCounter extends FixedWindowMeter {
  override readonly jitter: boolean = false

  constructor(site: SharedSite, exchange: Exchange) {
    super(site, exchange, exchange.localTime, false)
  }

  protected override reconsider(slot: number, cost: number, now: number): boolean {
    const base = baseOf(slot)
    const fields = this.table.fields
    if (fields[base + TAG] !== this.tag) this.refresh(slot, now)
    const away = this.exchange.degraded ? this.policy.degraded : undefined
    if (this.blockOf(slot, now) !== undefined || away === 'closed') {
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    const most = away === 'open' ? Number.POSITIVE_INFINITY : this.#most(slot, now)
    // It grows as time passes, so what is below it now stays below it. Below 0 gates have a meaning of their own.
    const limit = this.site.limitOf(slot)
    fields[base + GATE] = Math.max(0, Math.min(most, limit))
    return (fields[base + KNOWN] as number) + cost <= most && cost <= limit
  }

  /** What the running interval may hold at this moment. */
  #most(slot: number, now: number): number {
    return this.site.limitOf(slot) - this.#previous(slot) * (1 - this.#elapsed(now))
  }

  override remaining(slot: number, now: number): number {
    return Math.max(0, this.#most(slot, now) - (this.table.fields[baseOf(slot) + KNOWN] as number))
  }

  protected override knownBy(slot: number): SourceIndex {
    return (this.table.fields[baseOf(slot) + OTHERS] as number) > 0 ? GLOBAL : LOCAL
  }

  override usedOf(slot: number, now: number): number {
    const used = super.usedOf(slot, now)
    return used > 0 ? this.site.limitOf(slot) - this.#most(slot, now) + used : 0
  }

  override askedCells(): Cell[] {
    return [{ ordinal: (this.ordinal - 1) as Ordinal, taken: 0, given: 0 }, ...super.askedCells()]
  }

  override usedIn(cells: readonly Cell[], now: number): number {
    const previous = cells.find(({ ordinal }) => ordinal === this.ordinal - 1)
    return super.usedIn(cells, now) + (previous === undefined ? 0 : (previous.taken - previous.given) * (1 - this.#elapsed(now)))
  }

  #previous(slot: number): number {
    return this.activeOf(slot)?.previous ?? 0
  }

  #elapsed(now: number): number {
    return Math.min(1, Math.max(0, 1 - this.tillEnd(now) / this.policy.interval))
  }

  override refuse(slot: number, cost: number, now: number): Refusal {
    const { cooldown } = this.policy
    const known = this.table.fields[baseOf(slot) + KNOWN] as number
    const closed = cost <= 1 || known + 1 > this.#most(slot, now)
    if (cooldown > 0 && closed && !this.exchange.degraded && this.ordinal > this.amnesty && this.blockOf(slot, now) === undefined) {
      this.blocks.startCooldown(slot, now, now)
    }
    return this.explain(slot, cost, now)
  }

  override explain(slot: number, cost: number, now: number): Refusal {
    const refusal = super.explain(slot, cost, now)
    return refusal.reason === 'limit' ? { reason: 'limit', retryAfter: this.#opensIn(slot, cost, now) } : refusal
  }

  /** When the weighted sum leaves room, if nothing else comes. */
  #opensIn(slot: number, cost: number, now: number): number {
    const { interval } = this.policy
    const limit = this.site.limitOf(slot)
    const known = this.table.fields[baseOf(slot) + KNOWN] as number
    const units = Math.min(cost, limit)
    const previous = this.#previous(slot)
    if (known + units <= limit && previous > 0) {
      return Math.max(0, (1 - (limit - known - units) / previous - this.#elapsed(now)) * interval)
    }
    return this.tillEnd(now) + (known > 0 ? Math.max(0, 1 - (limit - units) / known) * interval : 0)
  }

  /** What the interval before the running one held is still part of the sum. */
  protected override mayForget(slot: number): boolean {
    return this.ordinal - this.ordinalOf(baseOf(slot)) > 1 && super.mayForget(slot)
  }

  protected override quiet(): boolean {
    return false
  }

  protected override leave(slot: number, base: number, ordinal: Ordinal): void {
    super.leave(slot, base, ordinal)
    const known = this.table.fields[base + KNOWN] as number
    if (ordinal === this.ordinal - 1 && known > 0) this.activate(slot).previous = known
    else if (this.activeOf(slot) !== undefined) this.activate(slot).previous = 0
  }

  protected override settledLate(late: Pick<LateCount, 'key' | 'ordinal' | 'taken' | 'given'>, total: number): void {
    const slot = this.table.find(late.key)
    if (slot < 0 || late.ordinal !== this.ordinal - 1) return
    // Whatever the store says, this node's own units were taken.
    this.activate(slot).previous = Math.max(total, late.taken - late.given)
    this.recheck(slot)
  }

  protected override merge(slot: number, base: number, cell: Cell, reply: Cell, _sent: number, now: number): void {
    const fields = this.table.fields
    fields[base + SENT] = Math.max(fields[base + SENT] as number, cell.taken)
    const active = this.activeOf(slot)
    if (active !== undefined) {
      active.givenSent = Math.max(active.givenSent, cell.given)
      active.flight = 0
      active.syncedAt = now
    }
    const others = Math.max(0, reply.taken - reply.given - (cell.taken - cell.given))
    if (reply.given > 0) this.setOthers(base, others)
    else this.raiseOthers(base, others)
    this.recheck(slot)
  }
}
