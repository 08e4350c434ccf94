import type { KeyBlocks } from '../keys/blocks.ts'
import type { KeyTable } from '../keys/key-table.ts'
import type { RejectionReason, SourceIndex, Stats } from '../report/stats.ts'
import type { Calendar } from '../time/calendar.ts'
import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import type { Ordinal } from '../time/intervals.ts'

/**
 * What a policy does while the store is down.
 * - `'share'`: allows this process's part of the limit. With coordination `'periodic'` it follows rule 4 of the published algorithm.
 * - `'open'`: allows all requests.
 * - `'closed'`: rejects all requests.
 */
export type FailMode = 'share' | 'open' | 'closed'

/** A policy as a meter sees it. Times are milliseconds. */
export interface MeterPolicy {
  readonly name: string
  /** Tells policies apart in the store. */
  readonly id: string
  /** Cost units per interval for each key; of slots those in flight. */
  readonly limit: number
  /** 0 where requests hold slots; the usual length where they are a calendar's. */
  readonly interval: number
  /** Whose intervals these are; undefined where all are of one length. */
  readonly calendar?: Calendar | undefined
  /** How long a request holds its slot at most; 0 where it holds none. */
  readonly maxDuration: number
  /** Parts of the interval. */
  readonly spans: number
  /** The first block, where cooldowns grow; 0 for none. */
  readonly cooldown: number
  /** How blocks of repeated offenders grow; undefined where all are alike. */
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

/** A request that waits for the store to say whether its units still fit. */
export interface Reservation {
  readonly slot: number
  readonly cost: number
  /** The limit of its key that this request came with, or the policy's: other requests may give the key other limits meanwhile. */
  readonly limit: number
  /** Told once: whether its units were counted, undefined when the store did not say; and in which interval. */
  answer(granted: boolean | undefined, ordinal?: Ordinal): void
  /** The request was decided meanwhile; nothing waits for the answer. */
  abandoned: boolean
}

/** How requests wait until the store grants them. */
export interface Reserving {
  /** Whether the store has to be asked about a request: there may be units for it, but not here. */
  needsStore(slot: number, cost: number, now: number): boolean
  /** Asks the store for units; they are counted when they come. Only after `needsStore` said so. */
  reserve(reservation: Reservation, now: number): void
  /** Units of a key that this node holds ahead of requests, those of the next interval included. */
  heldOf(slot: number): number
}

/**
 * How requests that wait get places ahead: when each of them may go, in the order in which all nodes have asked. The places of a key are the
 * node's: its requests take them one after another.
 */
export interface Booking {
  /** Whether those are being looked at, or let in, that wait: only to them the places belong. */
  serving: boolean
  /**
   * Tells how many units of a key wait now. Places are asked for, and those given back that are too many.
   *
   * @param first of those units, what the request takes that is to go next
   */
  want(slot: number, units: number, first: number, now: number): void
  /** Whether places of a key can be asked for now: there are other nodes, and the store is there. */
  asks(slot: number): boolean
  /** Units of a key that have a place, or whose place is being asked for. */
  bookedOf(slot: number): number
  /** Milliseconds until so many units can have gone at the soonest, beside those of `bookedOf`; undefined where the level does not say. */
  soonest(slot: number, units: number, now: number): number | undefined
}

/**
 * What the store said of several requests that it let go together: how many they are, fewer than were asked for where it is decided without it;
 * units that are left to the key, less than 0 where they were counted ahead; and milliseconds until all are back.
 */
export interface Grouped {
  readonly count: number
  readonly left: number
  readonly resetAfterMs: number
}

/** Within what limits several requests are let go together. */
export interface GroupLimits {
  /** Milliseconds after which it is decided without the store. */
  readonly storeTimeout: number
  /** Where they are counted ahead: units that may be in the key's bucket with them. */
  readonly most: number
}

/** How several requests for one key are decided about in one step: all of them go, or none. */
export interface Grouping {
  /** Whether the store is asked about such requests now. */
  asks(slot: number, cost: number, now: number): boolean
  /**
   * Where requests are counted ahead, so that the store says when each of them goes: units in the key's bucket as far as known, beyond
   * what it holds too. Undefined elsewhere.
   */
  ahead(slot: number, now: number): number | undefined
  /** Whether some of that is coming back: the next ones are to ask when it has, which their site is told of (`freed`). */
  takesBack(slot: number): boolean
  /** Whether that is still to be relied on: what other nodes have counted ahead may come back, and nobody tells this one. */
  trusted(slot: number, now: number): boolean
  /**
   * Asks for them.
   *
   * @param costs what each takes
   * @returns undefined where not all of them fit; without the store, where none does
   */
  take(slot: number, costs: readonly number[], limits: GroupLimits, now: number): Promise<Grouped | undefined>
}

/** What is known of the units that other nodes have not heard of. Times are of the monotonic clock. */
export interface Syncing {
  /** Live nodes. */
  readonly nodes: number
  /** Milliseconds that the store takes to answer, as a rule; 0 before its first answer. */
  readonly roundTrip: number
  /** The part of a key's traffic that came through this node lately; an equal part where that is not known. */
  shareOf(slot: number): number
  /** Own units that the store has not acknowledged. */
  unsyncedOf(slot: number): number
  /** Since when they may have been held; `now` for a key that is too quiet to be sent. */
  unsyncedSince(slot: number, now: number): number
  /** Whether the key's counts have been exchanged, so that the cluster's total is known. */
  wasExchanged(slot: number): boolean
  /** The counts of the other processes are at least as new as this moment. -Infinity before the store's first answer about the key. */
  heardAt(slot: number): number
}

/** What a meter sees of the limiter whose keys it counts. */
export interface MeterSite {
  /** The rule now: `update` may replace it by one whose counts are the same. */
  readonly policy: MeterPolicy
  /** The limit of a key: the policy's, or one that the key was given by itself. */
  limitOf(slot: number): number
  /** As `limitOf`, whatever limit the last request brought: the policy's, or one that lasts. */
  usualOf(slot: number): number
  /** The most units that a request to a key of this limit may take, as the algorithm says: the limit, or what a bucket holds. */
  most(limit: number): number
  /** Whether some key has a limit of its own. A meter is told by `recheck` when that changes. */
  readonly limited: boolean
  readonly table: KeyTable
  readonly blocks: KeyBlocks
  readonly stats: Stats
  /** The slot of the counter that keys without room share; less than 0 while there is none. */
  readonly sharedSlot: number
  /** Whether all keys that found no room share the slot. */
  isShared(slot: number): boolean
  keyOf(slot: number): string
  /** The key as the store gets it: no user's key can be taken for that of the shared counter. */
  idOf(slot: number): string
  /** Frees a slot. */
  forget(slot: number): void
  /** The interval or bucket that is counted in has changed. */
  movedTo(ordinal: Ordinal): void
  /** Slots of a key were freed because nobody has released them within the lease. */
  expired(slot: number, units: number): void
  /** Other nodes may have made room for a key: whoever waits for it goes on. */
  freed(slot: number): void
}

/** What `take` returns for a request that it has not counted: more than the gate must be asked. */
export const UNDECIDED = -1
/**
 * Nothing is left until `rollAt`, by what this node itself has counted; that it is rejected starts no cooldown, and no dry run lets it
 * pass. `fullBy` would tell `LOCAL`.
 */
export const USED_UP = -2

/**
 * Counts the keys of one policy. `now` is of the monotonic clock; a key's numbers lie in the limiter's table, in its slot.
 * `rollAt` must not have passed when anything but `roll` is called.
 */
export interface Meter {
  /** When `roll` must be called next. */
  rollAt: number
  /** Units allowed since the start. */
  allowed: number
  /** Moves on to the interval or bucket that `now` belongs to. */
  roll(now: number): void
  /** The rule has changed, its counts have not. */
  adopt(now: number): void

  /**
   * Counts a request of `cost` if the key's gate alone lets it pass; the units left then, as `remaining` tells them. Otherwise less
   * than 0: `UNDECIDED`, where `allows` is to be asked, or `USED_UP`.
   */
  take(slot: number, cost: number, now: number): number
  /** Whether the key's gate alone lets a request of `cost` pass. */
  fits(slot: number, cost: number, now: number): boolean
  /**
   * The source of the knowledge by which `allows` found that nothing of `cost` fits until `rollAt`, as long as nothing has
   * happened since; else -1. Also -1 for a cost that fits in no interval.
   */
  fullBy(slot: number, cost: number, now: number): SourceIndex | -1
  /** Whether a request of `cost` fits now. Without `count` it changes nothing that others could see. */
  allows(slot: number, cost: number, now: number, count?: boolean): boolean
  /** Counts a request that `allows` let pass, or a charge. */
  add(slot: number, cost: number, now: number): void
  /** A charge has counted more than fits: the other nodes, if there are any, should hear of it at once. */
  exceeded?(slot: number, now: number): void
  /** What `untake` needs to know of a key before `take`. */
  mark(slot: number): number
  /** Undoes a `take` of the same moment, to the last bit: `mark` is what it was before. */
  untake(slot: number, mark: number, cost: number): void

  /** Units left as far as this node knows. */
  remaining(slot: number, now: number): number
  /** Milliseconds until all units are back. */
  resetAfterMs(slot: number, now: number): number
  /** Why `allows` rejected, and for how long. Starts a cooldown where the policy has one. */
  reject(slot: number, cost: number, now: number): Rejection
  /** As `reject`, without any effect. */
  explain(slot: number, cost: number, now: number): Rejection
  /** The source of the knowledge that there is no room for `cost`. */
  sourceOf(slot: number, cost: number): SourceIndex

  /** Refunds units to the interval or bucket `ordinal`, from which they were taken. */
  refund(key: string, ordinal: Ordinal, units: number, now: number): void
  /**
   * As `refund`, whenever the units were taken. Absent: nothing comes back.
   *
   * @param units at most those that this process counted and that still count
   * @returns how many came back
   */
  refundNewest?(slot: number, units: number, now: number): number
  /**
   * A key's counts begin anew, as if it had never been counted. What is told of units of before that counts no more.
   *
   * @param slot the key's, or negative
   */
  reset(key: string, slot: number, now: number): void
  /**
   * Tells the other nodes, if there are any, that a key was reset now.
   *
   * @param id the key as the store gets it
   * @param known the key's last reset; 0 for none
   * @returns the new one, later than `known`
   */
  tellReset?(id: string, known: number, now: number): number
  /**
   * Somebody who knows says how many units of a key are used. Of those whose units are not simply added up, as they cost more the
   * colder a key is; absent: what is missing is added.
   */
  agree?(slot: number, used: number, now: number): void
  /** Something outside of the meter changed for a key: its gate must not decide about the next request. */
  recheck(slot: number): void
  /** The key of a slot is forgotten: what the meter keeps beside its record goes too. */
  forgotten(slot: number): void
  /** Frees idle keys in bulk, because the table is full. If the time is given, also keys whose manual block has ended. Returns whether there is room. */
  makeRoom(now?: number): boolean
  /** Makes requests wait for units of the store, where quota is taken ahead. */
  readonly reserving?: Reserving | undefined
  /** Gives requests that wait their places, where the store keeps a pace. */
  readonly booking?: Booking | undefined
  /** Asks the store for several requests that wait at once. */
  readonly grouping?: Grouping | undefined
  /** Absent where counts stay in this process. */
  readonly syncing?: Syncing | undefined
  /** Forgets idle keys of the slots from `from` on, for about a millisecond; returns where to go on, or -1 at the end. */
  sweep(from: number, now: number): number
  /**
   * Tells the other nodes, if there are any, that a key is blocked or no longer blocked.
   *
   * @param id the key as the store gets it
   * @param remaining milliseconds, growth not included
   */
  tellBlock?(id: string, kind: 'exceeded' | 'set' | 'lift', remaining: number, until: number): void
  /** Slots that a survey may look at in about a millisecond. */
  readonly surveyed: number
  /** Units of requests in flight at this node, of all keys; absent where no slots are held. */
  readonly inFlight?: number
  /** Units of a key now, as far as known. */
  usedOf(slot: number, now: number): number
  /** Units above the limit, or above what a bucket holds: those of charges. Where it is absent nobody knows. */
  over?(slot: number, now: number): number
  /** Units that a meter which takes this one's place is to count. Default: its own, and those above the limit. */
  handed?(slot: number, now: number): number
  /** Own units among them. */
  ownOf(slot: number, now: number): number
}
