import type { Meter, MeterPolicy, Syncing } from '../algorithms/meter.ts'
import type { SharedCoordination, SharedShape } from '../algorithms/shape.ts'
import type { MeterExchange, SharedSite } from '../algorithms/site.ts'
import type { Step } from '../algorithms/step.ts'
import type { Block } from '../keys/blocks.ts'
import type { SourceIndex } from '../report/stats.ts'
import type { BlockChange, Cell, StorePolicy, SyncResult, TotalAnnouncement } from '../store/contract.ts'
import type { LeaseAsk, LeaseNotice } from '../store/leases/ask.ts'
import type { EpochTime, Ordinal } from '../time/intervals.ts'
import type { Batch, EntryOwner } from './batch.ts'

/** What the meters whose counts are exchanged see of the exchange. */
export interface Exchange extends MeterExchange {
  /** Asks for an exchange of `slot` as soon as its spacing allows, at `at` on the monotonic clock. */
  due(meter: Exchanging, slot: number, at: number): void
  /** Asks for a change of a block to be sent. */
  changeBlock(meter: Exchanging, change: BlockChange, until: number): void
}

/**
 * Makes a meter whose counts travel.
 *
 * @param before what stood in its place while it was loaded
 */
export type MakeShared = (site: SharedSite, exchange: StoreExchange, before?: Meter) => Exchanging

/** Loads what makes a meter; may be called again if it has failed. */
export type LoadShared = () => Promise<MakeShared>

/** Makes a meter whose counts travel; if its code has to be loaded first, a function that loads it. */
export type SharedForm = (site: SharedSite, exchange: StoreExchange) => Exchanging | LoadShared

/** What an algorithm needs so that its local meter can stand in for one that is loaded. */
export interface StandingIn {
  readonly fields?: number
  local(site: SharedSite, exchange: MeterExchange): Meter
}

/** What an algorithm needs for `'central'`: what the store does, and a meter for what is known of it here. */
export interface CentralAlgorithm extends StandingIn {
  /** Default: that of fixed windows of the epoch. */
  readonly step?: Step
}

/** The exchange through a store. It brings all meters whose counts travel, so that applications without a store don't carry them. */
export interface StoreExchange extends Exchange {
  /** How long nodes count as live that are not heard of, in milliseconds. */
  readonly lifetime: number
  /** As `Math.random`. */
  readonly random: () => number
  /** Loads what lets requests wait for units of the store, as a meter's `reserving` asks for. */
  letWait(): Promise<void>
  /** Makes the meter of a policy whose processes count together. */
  form(shape: SharedShape, coordination: SharedCoordination): SharedForm
  /** Makes the meter of a policy whose requests the store decides about. */
  central(algorithm: CentralAlgorithm): SharedForm
  /**
   * What counts the keys of a policy whose meter is being loaded: the algorithm's own local meter. `become` is called with the meter
   * that takes over, and then told of the keys' counts.
   *
   * @param goesOn whether that meter goes on with the local one, which knows them
   */
  meanwhile(algorithm: StandingIn, site: SharedSite, load: LoadShared, goesOn: boolean, successor: Successor): Meter
}

/** Who gets the meter of a policy once it is loaded. */
export interface Successor {
  /** Whether the policy is still used, so that its meter is to be loaded. */
  readonly wanted: boolean
  become(meter: Exchanging): void
}

/** What a walk over the keys of a meter sends. */
export interface ScanOptions {
  /** Send also what a quiet key has (at close). */
  readonly all: boolean
  /** Treat everything as unsent (the store lost its data). */
  readonly resend: boolean
}

/** The counts of a meter travel. Times are of the monotonic clock. */
export interface Exchanging extends Meter, EntryOwner, Syncing {
  readonly policy: MeterPolicy
  /** What a store must know of the policy. */
  readonly storePolicy: StorePolicy
  /** The clock whose epoch the policy's intervals are of. */
  readonly time: EpochTime
  /** Whether the nodes' writes at a span's end are to be spread. */
  readonly jitter: boolean
  readonly site: SharedSite
  /** When all its keys are to be looked at next, on the monotonic clock. Default: at the end of a span. */
  nextWalk?(now: number): number
  /** When it has to be rolled though nothing happens to it: `rollAt`, or infinite where it can wait. */
  readonly wakeAt: number

  /** Adds a due key's counts to a batch, unless there is nothing to send. */
  collect(slot: number, now: number, batch: Batch): void
  /** A key asked for an exchange and does not get one, as the store is away. */
  undue(slot: number): void
  /** Totals that the store announced. */
  announced(announcement: TotalAnnouncement, now: number): void
  /** News of quota that nodes have taken ahead. */
  heardLease?(notice: LeaseNotice, now: number): void
  /** Adds to `batch` what a span's end must send of slots from `from` on; returns where to go on, or -1 at the end. */
  scan(from: number, now: number, batch: Batch, options: ScanOptions): number
  /** A block that the store or another node tells of; see `KeyBlocks.hear`. */
  blockRemotely(slot: number, remaining: number, now: number, manual: boolean, roundTrip?: number, source?: SourceIndex): void
  /** The store's answer to a block that this node has set. */
  blockAnswered(slot: number, remaining: number, now: number, manual: boolean, roundTrip: number): void
  /** Asks for an exchange of what the store lacks of a key, however little it is. */
  tellAll(id: string, now: number): void
  /** Units of a key now, by the store's cells: those of `askedCells`, and for a sliding window those of before. */
  usedIn(cells: readonly Cell[], now: number): number
  /** The cells to ask the store for, to know a key's units, nothing taken. */
  askedCells(): Cell[]
  /** The ask to know a key's units by, where quota is taken ahead. */
  askedLease?(id: string): LeaseAsk
  /** Asks the store for a key's units in a way of its own; undefined when it does not answer within `storeTimeout` milliseconds. */
  inquire?(id: string, storeTimeout: number): Promise<SyncResult | undefined>
  /** The store, or another node through it, tells of a reset of a key. */
  hearReset(id: string, epoch: number, now: number): void
  /** The key's last reset where it concerns this cell; undefined for none. */
  epochOf(id: string, ordinal: Ordinal): number | undefined
  /** Units of a key were counted here before this meter was loaded; the store is told of them. Only where it goes on with the meter of before. */
  owe?(slot: number, units: number, now: number): void
  /** The store's clock has become known. */
  adoptTime(now: number): void
  /** Makes every gate be computed anew at its key's next request. `away`: the store went away or came back. */
  invalidate(now: number, away: boolean): void
  blockOf(slot: number, now: number): Block | undefined
}
