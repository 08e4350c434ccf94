import type { Meter, Syncing } from '../algorithms/meter.ts'
import type { SharedCoordination, SharedShape } from '../algorithms/shape.ts'
import type { MeterExchange, SharedSite } from '../algorithms/site.ts'
import type { Step } from '../algorithms/step.ts'
import type { Cell, StorePolicy, SyncResult, TotalAnnouncement } from '../store/contract.ts'
import type { LeaseAsk, LeaseNotice } from '../store/leases/ask.ts'
import type { EpochTime } from '../time/intervals.ts'
import type { Batch, EntryOwner } from './batch.ts'
import type { BlockExchange, SyncedBlocks } from './synced-blocks.ts'

/** Time, the other processes and the store, as seen by the meters whose counts are synced. */
export interface Exchange extends MeterExchange, BlockExchange, Pick<Syncing, 'nodes' | 'roundTrip'> {
  /** Whether the store is down. */
  readonly storeDown: boolean
  /** The store is much later with a reply than usual. Only `storeTimeout` decides whether it is down. */
  readonly silent: boolean
  /** When the store last came back, on the monotonic clock. -Infinity if it was never down. */
  readonly storeUpAt: number
  /** Whether the process has stood still lately. It may do so again right after a response, so each unit is sent at once. */
  freezes(now: number): boolean
  /** When the sync was sent that found it up. Other processes probe at the same moment. */
  readonly foundAt: number
  /** Requests a sync of `slot` as soon as its spacing allows, at `at` on the monotonic clock. */
  due(meter: CountsSynced, slot: number, at: number): void
}

/**
 * Makes a meter whose counts are synced.
 *
 * @param before the meter that it replaces, which counted while the code was loaded
 */
export type MakeShared = (site: SharedSite, exchange: StoreExchange, before?: Meter) => Exchanging

/** Loads the function that makes a meter. May be called again after a failure. */
export type LoadShared = () => Promise<MakeShared>

/** Makes a meter whose counts are synced, or returns a function that loads its code first. */
export type SharedForm = (site: SharedSite, exchange: StoreExchange) => Exchanging | LoadShared

/** The parts of an algorithm by which its local meter can stand in while the real meter is being loaded. */
export interface StandingIn {
  readonly fields?: number
  local(site: SharedSite, exchange: MeterExchange): Meter
}

/** The parts of an algorithm for `'central'`: the store's step, and a meter for the counts here. */
export interface CentralAlgorithm extends StandingIn {
  /** Default: the step of fixed windows of the epoch. */
  readonly step?: Step
}

/** The sync through a store. It brings all meters whose counts are synced, so that applications without a store don't carry them. */
export interface StoreExchange extends Exchange {
  /** Milliseconds for which processes count as live after their last report. */
  readonly lifetime: number
  /** As `Math.random`. */
  readonly random: () => number
  /** Loads the code that lets requests wait for units of the store, for meters that take quota ahead. */
  letWait(): Promise<void>
  /** Makes the meter of a policy whose processes count together. */
  form(shape: SharedShape, coordination: SharedCoordination): SharedForm
  /** Makes the meter of a policy whose requests the store decides. */
  central(algorithm: CentralAlgorithm): SharedForm
  /**
   * The meter of a policy while its own is being loaded: the algorithm's local meter. `become` is called with the meter that takes over,
   * which then gets the keys' counts.
   *
   * @param goesOn whether that meter continues with the local one, which has the counts
   */
  meanwhile(algorithm: StandingIn, site: SharedSite, load: LoadShared, goesOn: boolean, successor: Successor): Meter
}

/** Gets the meter of a policy once it is loaded. */
export interface Successor {
  /** Whether the policy is still used, so that its meter must be loaded. */
  readonly wanted: boolean
  become(meter: Exchanging): void
}

/** The keys that a walk over a meter sends. */
export interface ScanOptions {
  /** Also sends keys far below their limits (at close). */
  readonly all: boolean
  /** Treats everything as unsent (the store lost its data). */
  readonly resend: boolean
}

/** A meter whose process syncs with others through a store. Times are of the monotonic clock. */
export interface Exchanging extends Meter {
  readonly site: SharedSite
  /** The policy as the store gets it. */
  readonly storePolicy: StorePolicy
  /** The clock that the policy's intervals follow. */
  readonly time: EpochTime
  readonly syncedBlocks: SyncedBlocks
  /** The meter itself, if its counts are synced. Absent if only blocks and resets are. */
  readonly counts?: CountsSynced
  /** When it must be rolled even without requests. Default: `rollAt`. */
  readonly wakeAt?: number
  /** Units of a key now, by the store's cells: those of `askedCells`, and for a sliding window the earlier ones. */
  usedIn(cells: readonly Cell[], now: number): number
  /** Reads a key's units from the store without a sync. Undefined without an answer within `storeTimeout` milliseconds. */
  inquire?(id: string, storeTimeout: number): Promise<SyncResult | undefined>
  /**
   * Takes units of a key that were counted here before this meter was loaded, and reports them to the store. Only if it continues with the
   * former meter.
   */
  owe?(slot: number, units: number, now: number): void
  /** The store's time has become known. */
  adoptTime(now: number): void
  /** Makes every key compute its gate again at its next request. `away`: the store went down or came back. */
  invalidate(now: number, away: boolean): void
}

/** A meter whose counts are synced. */
export interface CountsSynced extends Exchanging, EntryOwner {
  /** Whether the key writes of all processes at a span's end must be spread. */
  readonly jitter: boolean
  /** When all its keys must be visited next, on the monotonic clock. Default: at the end of a span. */
  nextWalk?(now: number): number | undefined
  /** Adds to `batch` the entries of slots from `from` on that a span's end must send. Returns the next slot, or -1 at the end. */
  scan(from: number, now: number, batch: Batch, options: ScanOptions): number
  /** Adds a due key's counts to a batch, unless there is nothing to send. */
  collect(slot: number, now: number, batch: Batch): void
  /** A key has requested a sync and gets none, because the store is down. */
  undue(slot: number): void
  /** Requests a sync of the counts that the store lacks of a key, however few they are. */
  syncKey(id: string, now: number): void
  /** Totals that the store announced, if counts are synced as totals. */
  announced?(announcement: TotalAnnouncement, now: number): void
  /** An announcement about quota that processes have taken ahead. */
  heardLease?(notice: LeaseNotice, now: number): void
  /** Empty cells to send for a key, so that the store replies with its units. */
  askedCells(): Cell[]
  /** A lease request that only reads a key's units, if quota is taken ahead. */
  askedLease?(id: string): LeaseAsk
}
