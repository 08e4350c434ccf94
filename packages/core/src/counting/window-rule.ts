import type { Cell, TotalAnnouncement } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { LateCount } from './late-counts.ts'

/** The counts of one key in an ended interval. */
export type PastCount = Pick<LateCount, 'key' | 'ordinal' | 'taken' | 'given'>

/**
 * The decisions of a process by the counts of a `WindowMeter`, and its use of the others' counts. In these the algorithms and coordinations
 * that count per interval differ. `base` is where the slot's record begins.
 */
export interface WindowRule {
  /** How many intervals before the running one decisions still depend on. */
  readonly remembers: number
  /** Decides if the gate alone can't, and sets the gate, as `Meter.allows` does. */
  allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean
  /** Units that this process may count in the running interval. */
  most(slot: number, now: number): number
  /** Starts a block if the rejection is due one. */
  rejected(slot: number, cost: number, now: number): void
  /** Milliseconds until a request that was rejected by the limit fits. Default: when the running interval ends. */
  opensIn?(slot: number, cost: number, now: number): number
  /** Whether `cost` does not fit by this process's own counts alone. */
  byOwn(slot: number, cost: number): boolean
  /** Used units in a snapshot, if `units` of the running interval are known and more than 0. Default: these. */
  used?(slot: number, units: number, now: number): number
  /** Milliseconds until all units of a key are back, `end` milliseconds before the running interval ends. Default: when it does. */
  emptyAfter?(slot: number, end: number): number
  /** How many units of the interval before the running one still count. None if the rule ignores them. */
  usedBefore?(units: number, now: number): number

  /** Whether a span's end may skip a key, because too few of its units are unsent to matter. */
  quiet(slot: number, base: number, unsent: number): boolean
  /** Takes over the cluster's total of the running interval. */
  merge(slot: number, base: number, cell: Cell, reply: Cell, now: number): void
  /** Totals that the store announced. Absent if only the replies to this process's own key writes count. */
  announced?(announcement: TotalAnnouncement, now: number): void
  /** A span ended and its counts could not be sent. */
  spanUnsent?(slot: number, base: number, now: number): void
  /** The interval of a record has ended. */
  left?(slot: number, base: number, ordinal: Ordinal): void
  /** The final total of an ended interval became known. */
  settledLate?(count: PastCount, total: number): void
}
