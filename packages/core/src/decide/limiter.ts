import type { Batch, EntryOwner, Ticket } from '../algorithms/shared/batch.ts'
import type { Reservation } from '../algorithms/shared/reservations.ts'
import { BLOCKED, baseOf, CounterTable, TAG } from '../keys/key-table.ts'
import { LONGEST_KEY } from '../keys/key-text.ts'
import { sumOf } from '../keys/units.ts'
import type { BlockChange, StorePolicy, SyncEntry, SyncResult, TotalAnnouncement } from '../store/contract.ts'
import { endOf, type Ordinal, ordinalAt } from '../time/intervals.ts'
import type { StoreTime } from '../time/store-time.ts'
import { type Block, KeyBlocks } from './blocks.ts'
import { RunningCell } from './outcome.ts'
import type { Policy } from './policy.ts'
import { CounterStats, OVERFLOWED, type RefusalReason, type SourceIndex } from './stats.ts'

/** What a policy's counter needs to know of the throttler that it is part of. */
export interface CounterHost {
  /** The store's clock. */
  readonly time: StoreTime
  /** This node's own wall clock. */
  readonly localTime: StoreTime
  /** Live nodes, at least 1. */
  readonly nodes: number
  /** False for a throttler without a store, and before the first exchange was tried. */
  readonly connected: boolean
  /** Whether the store is away. */
  readonly degraded: boolean
  /** The store owes an answer for much longer than usual: it may be away, which only its deadline will tell. */
  readonly silent: boolean
  /** When the store came back last, on the monotonic clock; -Infinity when it never was away. */
  readonly recoveredAt: number
  /** When the exchange was sent that found it, which other nodes do at the same moment. */
  readonly foundAt: number
  /** Asks for an exchange of `slot` as soon as its spacing allows, at `at` on the monotonic clock. */
  due(counter: Counter, slot: number, at: number): void
  /** Asks for a change of a block to be sent. */
  changeBlock(counter: Counter, change: BlockChange, until: number): void
  blocked(counter: Counter, key: string, forMs: number, cause: 'excess' | 'manual' | 'remote'): void
  unblocked(counter: Counter, key: string, cause: 'manual' | 'remote' | 'expired'): void
  overflow(counter: Counter): void
}

/** What `overflow: 'allow' | 'block'` yields instead of a slot. */
export const NO_SLOT = -1

/**
 * The gate of a key without room for one unit more, and without a block: a request is refused by one comparison. It tells whose
 * knowledge that rests on: `FULL - source`. No other gate but -Infinity is negative. Whoever makes room writes another gate or tag.
 */
const FULL = -1
const LEAST_FULL = FULL - OVERFLOWED

/** Versions of the state that gates depend on, per ordinal; see `tag`. The last one is never the counter's own. */
const VERSIONS = 1024
const STALE = VERSIONS - 1

/** The label of the counter that keys share when the table is full. Keys of users never start with NUL (see `wireKey`). */
const SHARED_LABEL = '\u0000overflow'

/**
 * One policy's counts at this node. The request path is `locate`, `admits`, `take`; everything else is subclasses'.
 *
 * A record's KNOWN and GATE are valid only while its TAG equals the counter's `tag`, which changes with the interval
 * and whenever gates must be computed anew (the store went away or came back, the number of nodes changed). So a whole
 * table is invalidated by one assignment.
 */
export abstract class Counter implements EntryOwner {
  policy: Policy
  wire: StorePolicy
  readonly host: CounterHost
  /** The clock whose epoch the policy's intervals are of. */
  readonly time: StoreTime
  readonly table: CounterTable
  readonly blocks: KeyBlocks<Counter>
  readonly overflow: 'shared' | 'allow' | 'block'
  readonly maxKeys: number
  /** The running cell (interval or bucket) of the epoch. */
  ordinal: Ordinal = 0 as Ordinal
  /** `policy` and `ordinal`, for decisions to refer to. */
  cell: RunningCell
  /** `ordinal` and the version of the state that gates were computed for. */
  tag: number = 0
  /** When `roll` must be called next, on the monotonic clock. */
  rollAt: number = Number.NEGATIVE_INFINITY
  /** Units admitted since the start. */
  admitted: number = 0
  readonly stats: CounterStats = new CounterStats()
  /** When the last walk at a span's end began that could send, on the monotonic clock. */
  protected walkedAt: number = Number.NEGATIVE_INFINITY
  #version = 0
  #sharedSlot = NO_SLOT
  #lastSlot = 0
  #overflowing = false
  /** Up to and with this ordinal units were admitted while the store was away: their excess starts no cooldown. */
  amnesty = -1

  constructor(policy: Policy, wire: StorePolicy, host: CounterHost, maxKeys: number, overflow: 'shared' | 'allow' | 'block') {
    this.policy = policy
    this.cell = new RunningCell(policy, this.ordinal)
    this.wire = wire
    this.host = host
    this.time = policy.enforcement === 'published' ? host.localTime : host.time
    this.maxKeys = maxKeys
    this.overflow = overflow
    this.table = new CounterTable(maxKeys)
    this.blocks = new KeyBlocks<Counter>(this)
  }

  /** The slot of a key, made if need be; `NO_SLOT` when the table is full and `overflow` says so. */
  locate(key: string): number {
    const slot = this.table.find(key)
    return slot >= 0 ? slot : this.#locateNew(key)
  }

  /** As `locate`, for a key that is nearly always the same: found without a look-up. */
  locateAgain(key: string): number {
    if (this.table.keys[this.#lastSlot] !== key) this.#lastSlot = this.locate(key)
    return this.#lastSlot
  }

  /** As `locateAgain`, but -1 for a key that is new. */
  findAgain(key: string): number {
    return this.table.keys[this.#lastSlot] === key ? this.#lastSlot : this.table.find(key)
  }

  // A record on the request path: `fields[base]` is KNOWN, `fields[base + 1]` GATE, `fields[base + 2]` TAG, see `CounterTable`.

  /** `admits` and `take` in one step where nothing needs to be thought of; false: ask `admits`. `rollAt` must not have passed. */
  takes(slot: number, cost: number): boolean {
    const { fields } = this.table
    const base = slot * 5
    const known = (fields[base] as number) + cost
    if (!(known < (fields[base + 1] as number) && fields[base + 2] === this.tag)) return false
    fields[base] = known
    this.admitted += cost
    return true
  }

  /** Whether a request of `cost` fits, where nothing needs to be thought of. */
  fits(slot: number, cost: number): boolean {
    const { fields } = this.table
    const base = slot * 5
    return (fields[base] as number) + cost < (fields[base + 1] as number) && fields[base + 2] === this.tag
  }

  /** Whether a request of `cost` fits now. `rollAt` must not have passed. Without `count` nothing comes of it. */
  admits(slot: number, cost: number, now: number, count = true): boolean {
    return this.fits(slot, cost) || (this.fullBy(slot, cost) < 0 && this.reconsider(slot, cost, now, count))
  }

  /**
   * Whose knowledge it is, if `reconsider` found that nothing of `cost` fits until the interval is over, and nothing has
   * happened since; else -1. What fits in no interval has to be told so: -1.
   */
  fullBy(slot: number, cost: number): SourceIndex | -1 {
    const { fields } = this.table
    const base = slot * 5
    const gate = fields[base + 1] as number
    if (!(gate < 0 && gate >= LEAST_FULL && fields[base + 2] === this.tag && cost >= 1)) return -1
    if (cost === 1) return (FULL - gate) as SourceIndex
    return cost > this.policy.limit ? -1 : this.#source(slot, cost)
  }

  /** Counts a request that `admits` let pass, or what was charged. */
  take(slot: number, cost: number): void {
    const { fields } = this.table
    const index = slot * 5
    fields[index] = sumOf(fields[index] as number, cost)
    this.admitted += cost
  }

  /** Units that are known of a key: what `takes` adds to. */
  knownAt(slot: number): number {
    return this.table.fields[slot * 5] as number
  }

  /** Puts right what `takes` has counted just now: `known` is what was known before, to the last bit. */
  takeBack(slot: number, known: number, cost: number): void {
    this.table.fields[slot * 5] = known
    this.admitted -= cost
  }

  /** Units left as far as this node knows. */
  remaining(slot: number, _now: number): number {
    return Math.max(0, this.policy.limit - (this.table.fields[slot * 5] as number))
  }

  /** Milliseconds until units come back. */
  resetAfter(_slot: number, now: number): number {
    return Math.max(0, this.rollAt - now)
  }

  /** Moves on to the cell that `now` belongs to, or sets `rollAt` anew where it is not over yet. */
  roll(now: number): void {
    const { width } = this.wire
    const ordinal = ordinalAt(this.time.at(now), width)
    // A node's ordinal never goes back: what is counted stays in the cell that it was counted in.
    if (ordinal > this.ordinal) {
      this.moveTo(ordinal)
      this.rolled(now)
    }
    this.rollAt = this.time.monotonicAt(endOf(this.ordinal, width))
    if (this.rollAt <= now) this.rollAt = now + RECHECK
  }

  protected moveTo(ordinal: Ordinal): void {
    this.ordinal = ordinal
    this.cell = new RunningCell(this.policy, ordinal)
    this.tag = ordinal * VERSIONS + this.#version
  }

  /** Whether decisions are made without the store. By share already when it falls silent: that costs little if it answers. */
  protected get storeAway(): boolean {
    return this.host.degraded || (this.host.silent && this.policy.degraded === 'share')
  }

  /**
   * The store's clock has become known. A node whose own clock was ahead, as far as that is certain, goes back to the
   * others' cell, the only time that it does: it would count in a cell of its own until they come there. Nothing of it is
   * in the store yet, as counts are not sent before the store's first answer.
   */
  adoptTime(now: number): void {
    const ordinal = ordinalAt(this.time.at(now), this.wire.width)
    if (ordinalAt(this.time.at(now) + this.time.uncertainty(now), this.wire.width) < this.ordinal) {
      this.moveTo(ordinal)
      this.amnesty = Math.min(this.amnesty, ordinal)
    }
    this.roll(now)
  }

  /** Makes every gate be computed anew at its key's next request. */
  invalidate(now: number): void {
    this.#version = (this.#version + 1) % STALE
    this.tag = this.ordinal * VERSIONS + this.#version
    this.roll(now)
  }

  /** Takes a changed rule over whose counts are the same: another limit or cooldown, say. Counts and blocks stay. */
  adopt(policy: Policy, now: number): void {
    this.policy = policy
    this.cell = new RunningCell(policy, this.ordinal)
    const hot = this.wire.hot === Number.POSITIVE_INFINITY ? this.wire.hot : policy.limit / 4
    this.wire = Object.freeze({ ...this.wire, limit: policy.limit, hot })
    this.invalidate(now)
  }

  /** The ordinal that a record's counts belong to; 0 for a new one. */
  ordinalOf(base: number): Ordinal {
    return Math.floor((this.table.fields[base + TAG] as number) / VERSIONS) as Ordinal
  }

  /** The block of a slot, if it still holds. */
  blockOf(slot: number, now: number): Block | undefined {
    return ((this.table.flags[slot] as number) & BLOCKED) === 0 ? undefined : this.blocks.of(slot, now)
  }

  /** Makes the gate of one key be computed anew at its next request. */
  markStale(slot: number): void {
    const base = baseOf(slot)
    this.table.fields[base + TAG] = this.ordinalOf(base) * VERSIONS + STALE
  }

  /**
   * A block that the store or another node tells of.
   *
   * @param remaining milliseconds that the block lasts when it was told; 0 lifts it
   * @param roundTrip milliseconds within which it was asked and told; undefined for an announcement
   */
  blockRemotely(slot: number, remaining: number, now: number, roundTrip?: number, source?: SourceIndex): void {
    this.blocks.hear(slot, remaining, now, roundTrip, source)
  }

  /** The store's answer to a block that this node has set. */
  blockAnswered(slot: number, remaining: number, now: number, roundTrip: number): void {
    const known = this.blockOf(slot, now)
    if (known !== undefined) known.slack = roundTrip + this.host.time.uncertainty(now)
    this.blockRemotely(slot, remaining, now, roundTrip)
  }

  /** The slot of a key of the store, made if need be; `NO_SLOT` when there is no room. */
  locateWire(wireKey: string): number {
    const found = this.findWire(wireKey)
    // No node sends longer ones.
    if (found >= 0 || wireKey === SHARED_LABEL || wireKey.length > LONGEST_WIRE_KEY) return found
    // Strangers' news must not push this node's own keys out, nor fall to the shared counter.
    return this.table.full && !this.evict() ? NO_SLOT : this.table.add(keyOfWire(wireKey))
  }

  /** The slot of a key of the store, or `NO_SLOT`. */
  findWire(wireKey: string): number {
    return wireKey === SHARED_LABEL ? this.#sharedSlot : this.table.find(keyOfWire(wireKey))
  }

  /** A slot of the key's own even where the table is full: a block by hand must hold. */
  locateAlways(key: string): number {
    const found = this.table.find(key)
    if (found >= 0) return found
    if (this.table.full) this.evict()
    return this.table.addAnyway(key)
  }

  /** Forgets a key. */
  protected forget(slot: number): void {
    this.blocks.forget(slot)
    this.table.remove(slot)
    if (slot === this.#sharedSlot) this.#sharedSlot = NO_SLOT
  }

  /** The key of a slot as users know it. */
  keyOf(slot: number): string {
    return this.table.keys[slot] ?? ''
  }

  /** The key of a slot as the store gets it: no user's key can be taken for the shared counter. */
  wireKey(slot: number): string {
    return slot === this.#sharedSlot ? SHARED_LABEL : wireOfKey(this.keyOf(slot))
  }

  /** Whether new keys find no room. */
  get overflowing(): boolean {
    return this.#overflowing && this.table.full
  }

  /** Counts a refusal, with where the knowledge came from that it rests on. After `refuse`. */
  countRefusal(slot: number, cost: number, reason: RefusalReason): void {
    const shared = slot === this.#sharedSlot
    this.stats.countRefusal(reason, reason === 'limit' ? this.#source(slot, cost) : shared ? OVERFLOWED : this.blocks.sourceOf(slot))
  }

  /** The gate of a key that has become full. */
  protected fullGate(slot: number): number {
    return FULL - this.#source(slot, 1)
  }

  #source(slot: number, cost: number): SourceIndex {
    return slot === this.#sharedSlot ? OVERFLOWED : this.sourceOf(slot, cost)
  }

  /** Whose knowledge leaves no room for `cost`. */
  protected abstract sourceOf(slot: number, cost: number): SourceIndex
  /** Units of a key in the cluster now, as far as known. */
  abstract usedOf(slot: number, now: number): number
  /** Own units among them. */
  abstract ownOf(slot: number): number
  /** Own units among them that the store has not acknowledged. */
  abstract unsyncedOf(slot: number): number
  /** Since when they may have been held, on the monotonic clock; `now` for a key that is too quiet to be sent. */
  abstract unsyncedSince(slot: number, now: number): number
  /** Whether the key's counts have been exchanged, so that the cluster's total is known. */
  abstract wasExchanged(slot: number): boolean

  #locateNew(key: string): number {
    if (this.table.full && !this.evict()) {
      if (!this.#overflowing) {
        this.#overflowing = true
        this.host.overflow(this)
      }
      if (this.overflow !== 'shared') return NO_SLOT
      if (this.#sharedSlot < 0) this.#sharedSlot = this.table.reserve(SHARED_LABEL)
      return this.#sharedSlot
    }
    this.#overflowing = false
    return this.table.add(key)
  }

  /** Frees what nobody needs, in bulk, because the table is full. True when there is room now. */
  protected abstract evict(): boolean
  /** The ordinal has just changed. */
  protected rolled(_now: number): void {}

  /** The slow part of `admits`: rolls the record over, computes its gate and, if the request is to count, asks for exchanges. */
  abstract reconsider(slot: number, cost: number, now: number, count: boolean): boolean
  /** Whether a request that `admits` lets pass must wait for the store's word all the same (`strict`). */
  mustAsk(_slot: number, _now: number): boolean {
    return false
  }

  /** Asks the store for units on condition that they fit. Only after `mustAsk` said so. */
  reserve(reservation: Reservation, _now: number): void {
    reservation.answer(undefined)
  }

  /** Why `admits` refused, and for how long. Starts a cooldown where the policy has one. */
  abstract refuse(slot: number, cost: number, now: number): Refusal
  /** As `refuse`, without any effect. */
  abstract explain(slot: number, cost: number, now: number): Refusal
  /** Gives units back to the cell that they were taken from. */
  abstract giveBack(key: string, ordinal: Ordinal, units: number, now: number): void
  /** Adds a due key's counts to a batch, unless there is nothing to send. */
  abstract collect(slot: number, now: number, batch: Batch): void
  /** A key that asked for an exchange does not get one, as the store is away. */
  abstract undue(slot: number): void
  /** One exchange of `ticket` succeeded. */
  abstract settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void
  /** One exchange of `ticket` failed, or its outcome is unknown. */
  abstract fail(ticket: Ticket, entry: SyncEntry, now: number): void
  /** One exchange of `ticket` takes much longer than usual. */
  overdue(_ticket: Ticket): void {}
  /** Totals that the store announced. */
  abstract announced(announcement: TotalAnnouncement, now: number): void
  /** The store lost its data: what was acknowledged counts as unsent. */
  abstract lost(slot: number): void
  /** Adds to `batch` what a span's end must send of slots from `from` on; returns where to go on, or -1 at the end. */
  abstract scan(from: number, now: number, batch: Batch, options: ScanOptions): number
}

/** A bounded key, and what `wireOfKey` may put before it. */
const LONGEST_WIRE_KEY = LONGEST_KEY + 2

/** A key as the store gets it: no user's key can be taken for the shared counter. */
export function wireOfKey(key: string): string {
  return key.startsWith('\u0000') ? `\u0000${key}` : key
}

function keyOfWire(wireKey: string): string {
  return wireKey.startsWith('\u0000\u0000') ? wireKey.slice(1) : wireKey
}

export interface ScanOptions {
  /** Send also what a quiet key has (at close). */
  readonly all: boolean
  /** Treat everything as unsent (the store lost its data). */
  readonly resend: boolean
}

export interface Refusal {
  readonly reason: RefusalReason
  /** Milliseconds. */
  readonly retryAfter: number
}

/** While the store's clock is being slewed an interval may end a little later than foreseen: look again after this. */
const RECHECK = 1
