import type { KeyBlocks } from '../keys/blocks.ts'
import type { KeyTable } from '../keys/key-table.ts'
import type { RejectionReason, SourceIndex, Stats } from '../report/stats.ts'
import type { Calendar } from '../time/calendar.ts'
import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Holds } from './holds.ts'
import type { StoreReservations } from './reservations.ts'

/**
 * The behaviour of a policy while the store is down.
 * - `'share'`: allows this process's part of the limit. With coordination `'periodic'` it follows rule 4 of the published algorithm.
 * - `'open'`: allows all requests.
 * - `'closed'`: rejects all requests.
 */
export type FailMode = 'share' | 'open' | 'closed'

/** A policy as a meter sees it. Times are milliseconds. */
export interface MeterPolicy {
  readonly name: string
  /** Identifies the policy in the store. */
  readonly id: string
  /** Cost units per interval for each key, or slots in flight with `concurrency()`. */
  readonly limit: number
  /** Milliseconds. 0 for slots, and the usual length for a calendar. */
  readonly interval: number
  /** The calendar of the intervals. Undefined if all have one length. */
  readonly calendar?: Calendar | undefined
  /** How long a request keeps its slot at most. 0 without slots. */
  readonly maxDuration: number
  /** Parts of the interval. */
  readonly spans: number
  /** The first block, if cooldowns grow. 0 for none. */
  readonly cooldown: number
  /** How blocks of repeated offenders grow. Undefined if they don't. */
  readonly cooldownGrowth: CooldownGrowth | undefined
  readonly failMode: FailMode
  /** Rejections are only reported. */
  readonly dryRun: boolean
}

/** Why a request was rejected. */
export interface Rejection {
  readonly reason: RejectionReason
  /** Milliseconds. */
  readonly retryAfterMs: number
}

/** How far a key's units are synced with the other processes. Times are of the monotonic clock. */
export interface Syncing {
  /** Live processes, at least 1. */
  readonly nodes: number
  /** Milliseconds that the store usually takes to reply. 0 before its first reply. */
  readonly roundTrip: number
  /** This process's part of a key's recent traffic. An equal part if that is unknown. */
  shareOf(slot: number): number
  /** Own units that the store has not acknowledged. */
  unsyncedOf(slot: number): number
  /** Since when they may have been unsent. `now` for a key that is used too little to be sent. */
  unsyncedSince(slot: number, now: number): number
  /** Whether the key's counts were synced, so that the cluster's total is known. */
  wasExchanged(slot: number): boolean
  /** The counts of the other processes are at least as new as this moment. -Infinity before the store's first answer about the key. */
  heardAt(slot: number): number
}

/** A meter's view of the limiter whose keys it counts. */
export interface MeterSite {
  /** The current rule: `update` may replace it with one whose counts are the same. */
  readonly policy: MeterPolicy
  /** The limit of a key: the policy's, or the key's own. */
  limitOf(slot: number): number
  /** As `limitOf`, but ignores a limit that only the last request brought. */
  usualOf(slot: number): number
  /** The most units that a request to a key of this limit may cost, by the algorithm: the limit, or a bucket's capacity. */
  most(limit: number): number
  /** Whether some key has a limit of its own. `recheck` is called when that changes. */
  readonly limited: boolean
  readonly table: KeyTable
  readonly blocks: KeyBlocks
  readonly stats: Stats
  /** The slot of the counter that keys without a slot share. Negative without one. */
  readonly sharedSlot: number
  /** Whether the slot is shared by all keys that found no slot. */
  isShared(slot: number): boolean
  keyOf(slot: number): string
  /** The key's id in the store, in which no user's key can equal the shared counter's. */
  idOf(slot: number): string
  /** Frees a slot. */
  forget(slot: number): void
  /** The current interval or bucket has changed. */
  movedTo(ordinal: Ordinal): void
  /** Slots of a key were freed because they were not released within `maxDuration`. */
  expired(slot: number, units: number): void
  /** Other processes may have returned units of a key: its waiting requests try again. */
  freed(slot: number): void
}

/** The result of `take` for a request that it did not count, because the gate alone can't decide it. */
export const UNDECIDED = -1
/**
 * No units are left until `rollAt`, by this process's own counts, and a rejection starts no cooldown and is no dry run. `fullBy` would
 * return `LOCAL`.
 */
export const USED_UP = -2

/**
 * Decides about the requests to the keys of one policy, and counts them. `now` is of the monotonic clock. A key's numbers are in the
 * limiter's table, in its slot. Before any other call, `roll` must be called if `rollAt` has passed.
 */
export interface Counter {
  /** When `roll` must be called next. */
  rollAt: number
  /** Moves on to the interval or bucket that `now` belongs to. */
  roll(now: number): void
  /**
   * Counts a request of `cost` if the key's gate alone allows it, and returns the remaining units, as `remaining`. Otherwise negative:
   * `UNDECIDED` if `allows` must decide, or `USED_UP`.
   */
  take(slot: number, cost: number, now: number): number
  /** Whether the key's gate alone allows a request of `cost`. */
  fits(slot: number, cost: number, now: number): boolean
  /**
   * The source of the counts by which `allows` found that nothing of `cost` fits until `rollAt`, as long as nothing has happened since.
   * Otherwise -1, also for a cost that fits in no interval.
   */
  fullBy(slot: number, cost: number, now: number): SourceIndex | -1
  /** Whether a request of `cost` fits now. Without `count` it has no visible effect. */
  allows(slot: number, cost: number, now: number, count?: boolean): boolean
  /** Counts a request that `allows` accepted, or a charge. */
  add(slot: number, cost: number, now: number): void
  /** The state of a key that `untake` needs, read before `take`. */
  mark(slot: number): number
  /** Undoes a `take` of the same moment exactly: `mark` is the state before it. */
  untake(slot: number, mark: number, cost: number): void
  /** Units left, by the counts of this process. */
  remaining(slot: number, now: number): number
  /** Milliseconds until all units are back. */
  resetAfterMs(slot: number, now: number): number
  /** Why `allows` rejected, and for how long. Starts a cooldown if the policy has one. */
  reject(slot: number, cost: number, now: number): Rejection
}

/** The counts of a meter, for snapshots and explanations. Reading them changes nothing. */
export interface Reported {
  /** Units allowed since the start. */
  allowed: number
  /** Slots that a survey may visit in about a millisecond. */
  readonly surveyed: number
  /** Units of requests in flight in this process, of all keys. Absent without slots. */
  readonly inFlight?: number
  /** Units of a key now, by confirmed counts. */
  usedOf(slot: number, now: number): number
  /** Units above the limit, or above a bucket's capacity, from charges. Absent if that is unknown. */
  over?(slot: number, now: number): number
  /** Own units among them. */
  ownOf(slot: number, now: number): number
  /** As `reject`, without any effect. */
  explain(slot: number, cost: number, now: number): Rejection
  /** The source of the counts by which `cost` does not fit. */
  sourceOf(slot: number, cost: number): SourceIndex
}

/** Reports blocks and resets of keys to the other processes. Keys are as the store gets them. */
export interface BlockReports {
  /** A key is blocked for `remaining` milliseconds, growth not included, or no longer blocked. Useless after `until`, the block's end. */
  report(key: string, kind: 'exceeded' | 'set' | 'lift', remaining: number, until: number): void
  /** A key was reset now. Returns the time of this reset, later than `known`: the key's last one, or 0. */
  reportReset(key: string, known: number, now: number): number
}

/** Counts the keys of one policy, and keeps their counts: refunds, resets, other rules, keys that leave. */
export interface Meter extends Counter, Reported {
  /** The rule has changed, its counts have not. */
  adopt(now: number): void
  /** A charge has counted more than fits: other processes, if there are any, should get it immediately. */
  exceeded?(slot: number, now: number): void
  /** Refunds units to the interval or bucket `ordinal`, from which they were taken. */
  refund(key: string, ordinal: Ordinal, units: number, now: number): void
  /**
   * As `refund`, whenever the units were taken. Absent: nothing comes back.
   *
   * @param units at most the units that this process counted and that still count
   * @returns how many came back
   */
  refundNewest?(slot: number, units: number, now: number): number
  /**
   * A key's counts begin again, as if it had never been used. Later reports of earlier units don't count.
   *
   * @param slot the key's, or negative
   */
  reset(key: string, slot: number, now: number): void
  /**
   * Takes over how many units of a key are used, from a better source. Only for meters whose units aren't simply added up, because they
   * cost more if a key is cold. Absent: missing units are added.
   */
  agree?(slot: number, used: number, now: number): void
  /** Something outside of the meter changed for a key, so its gate must not decide the next request. */
  recheck(slot: number): void
  /** The key of a slot is removed: the meter also removes all else that it keeps of the key. */
  forgotten(slot: number): void
  /**
   * Frees idle keys in bulk, because the table is full. If the time is given, also keys whose manual block has ended. Returns whether there
   * is room.
   */
  makeRoom(now?: number): boolean
  /** Reserves units for requests that wait for the store. Absent if none does. */
  readonly reservations?: StoreReservations | undefined
  /** Keeps open reservations at the store. Absent if they end with this process. */
  readonly holds?: Holds | undefined
  /** Absent if counts stay in this process. */
  readonly syncing?: Syncing | undefined
  /** Removes idle keys of the slots from `from` on, for about a millisecond. Returns the next slot, or -1 at the end. */
  sweep(from: number, now: number): number
  /** Reports blocks and resets to the other processes. Absent if counts stay in this process. */
  syncedBlocks?: BlockReports
  /** Units to pass on to a meter that replaces this one. Default: its own, and those above the limit. */
  handed?(slot: number, now: number): number
}
