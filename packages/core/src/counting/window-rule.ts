import type { SourceIndex } from '../report/stats.ts'
import type { Cell, TotalAnnouncement } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { LateCount } from './late-counts.ts'

/** The counts of one key in an interval that is over. */
export type PastCount = Pick<LateCount, 'key' | 'ordinal' | 'taken' | 'given'>

/**
 * What a node allows by the counts of a `WindowMeter`, and what it makes of what the others say: that in which the algorithms
 * and coordinations that count per interval differ. `base` is where the slot's record begins.
 */
export interface WindowRule {
  /** How many intervals before the running one decisions still look at. */
  readonly remembers: number
  /** Decides where the gate alone does not, and sets the gate; as `Meter.allows`. */
  allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean
  /** Units that this node may count in the running interval. */
  most(slot: number, now: number): number
  /** Starts a block if the rejection is due one. */
  rejected(slot: number, cost: number, now: number): void
  /** Milliseconds until a request that was rejected by the limit fits. */
  opensIn(slot: number, cost: number, now: number): number
  /** The source of the knowledge that there is no room for `cost`, for a key of its own. */
  knownBy(slot: number, cost: number): SourceIndex
  /** What a snapshot shows as used, where `units` of the running interval are known and more than 0. */
  used(slot: number, units: number, now: number): number
  /** Milliseconds until all units of a key are back, `end` milliseconds before the running interval ends. Default: when it does. */
  emptyAfter?(slot: number, end: number): number
  /** How many of the units of the interval before the running one still count; none where the rule does not look at it. */
  usedBefore?(units: number, now: number): number

  /** Whether a span's end may skip a key, since too little of it is unsent to matter. */
  quiet(slot: number, base: number, unsent: number): boolean
  /** Takes the cluster's total of the running interval over. */
  merge(slot: number, base: number, cell: Cell, reply: Cell, now: number): void
  /** Totals that the store announced. */
  announced(announcement: TotalAnnouncement, now: number): void
  /** A span ended and its counts could not be sent. */
  spanUnsent(slot: number, base: number, now: number): void
  /** The interval of a record is over. */
  left(slot: number, base: number, ordinal: Ordinal): void
  /** The final total of an interval that is over became known. */
  settledLate(count: PastCount, total: number): void
  /** An exchange takes much longer than usual. */
  overdue(slot: number): void
}
