import type { MeterPolicy, Rejection, Syncing } from '../algorithms/meter.ts'
import { nextRoll, runningAt } from '../algorithms/roll.ts'
import { RoomSearch } from '../algorithms/room-search.ts'
import type { SharedSite } from '../algorithms/site.ts'
import type { KeyBlocks } from '../keys/blocks.ts'
import {
  ACTIVE,
  BLOCKED,
  baseOf,
  DUE,
  FULL_BY,
  GATE,
  IN_FLIGHT,
  type KeyTable,
  KNOWN,
  OTHER_FLAGS,
  OTHERS,
  SENT,
  STRIDE,
  TAG,
  TOLD,
} from '../keys/key-table.ts'
import {
  ANNOUNCED,
  ASKED,
  CLOSE,
  GLOBAL,
  LOCAL,
  OVERFLOWED,
  PROOF,
  RESEND,
  type SourceIndex,
  SPAN_END,
  type Stats,
} from '../report/stats.ts'
import { type Cell, LATEST, type StorePolicy, type SyncEntry, type SyncResult } from '../store/contract.ts'
import { sumOf } from '../store/units.ts'
import { epochTimeOf } from '../time/calendar.ts'
import { type EpochTime, type Ordinal, ordinalAt, startOf } from '../time/intervals.ts'
import { Batch, type Ticket } from './batch.ts'
import type { CountsSynced, Exchange, ScanOptions } from './site.ts'
import { SyncedBlocks } from './synced-blocks.ts'
import type { SyncedKeys } from './synced-key.ts'

/**
 * The gate of a key without capacity for one more unit, and without a block: one comparison rejects a request. The source of the confirmed
 * counts is in the key's flags. No other gate but -Infinity is negative. Code that frees capacity writes another gate or tag.
 */
const FULL = -1

/**
 * Versions of the state behind the gates that fit into a tag, per ordinal: 1,024 for the shortest cells of 5 ms, and more for longer cells.
 * So no cell can have more changes than there are versions.
 */
function versionsOf(width: number): number {
  return 2 ** Math.floor(Math.log2(Number.MAX_SAFE_INTEGER / (LATEST / width + 1)))
}

/** Slots that one step of a walk visits at most, so that a step takes about a millisecond. */
const SCAN_STEP = 20_000
/** Milliseconds between two syncs of one key, at least. */
const SPACING = 2
/**
 * With spans of at least this many milliseconds, no key is skipped as far below its limit: a process that is killed loses its unsent units,
 * which may be many in a long interval.
 */
export const LONG_SPAN = 300_000
/** Milliseconds after which a key is tried again if only its part of the store is down: as often as a store that is down. */
const RETRY_ALONE = 200
/** A key fills fast if the store lacks this part of a process's share of the limit while a reply is late. */
const FILLS_FAST = 0.025
/** This part of it is much, whether or not more came since it was sent. */
const MANY = 0.1
/**
 * Milliseconds after the store's return in which every process finds it again and sends its counts: a probe period and some round trips.
 */
export const SETTLE = 250

/**
 * The base of all meters whose counts are synced: a gate for each key, below which a request is counted immediately, and the requests for a
 * key's sync.
 *
 * A record's KNOWN and GATE are valid only while its TAG equals the meter's `tag`. The tag changes with the interval, and whenever gates
 * must be computed again (the store went down or came back, the number of processes changed). So one assignment invalidates a whole table.
 */
export abstract class GatedMeter implements CountsSynced, Syncing {
  readonly site: SharedSite
  readonly exchange: Exchange
  readonly table: KeyTable
  readonly time: EpochTime
  readonly syncedBlocks: SyncedBlocks
  storePolicy: StorePolicy
  readonly counts: CountsSynced = this
  readonly syncing: Syncing = this
  readonly jitter: boolean = true
  readonly surveyed: number = 50_000
  /** Absent for leases, which have a protocol of their own. */
  readonly records?: SyncedKeys
  /** The running interval or bucket of the epoch. */
  ordinal: Ordinal = 0 as Ordinal
  /** `ordinal`, and the version of the state for which gates were computed. */
  tag: number = 0
  rollAt: number = Number.NEGATIVE_INFINITY
  allowed: number = 0
  /** When the last walk at a span's end began that could send, on the monotonic clock. */
  walkedAt: number = Number.NEGATIVE_INFINITY
  /** Units of this ordinal and earlier ones may have been allowed while the store was down: they start no cooldown. */
  awayIn = -1
  readonly #versions: number
  /** Cells per step of the meter's ordinal, which is that of the first of them. */
  readonly #group: number
  #version = 0
  readonly #search = new RoomSearch()

  constructor(site: SharedSite, exchange: Exchange, storePolicy: StorePolicy, time: EpochTime = exchange.time, group = 1) {
    this.site = site
    this.exchange = exchange
    this.storePolicy = storePolicy
    this.#group = group
    this.#versions = versionsOf(storePolicy.width * group)
    this.table = site.table
    this.time = epochTimeOf(site.policy, time)
    this.syncedBlocks = new SyncedBlocks(this)
  }

  get policy(): MeterPolicy {
    return this.site.policy
  }

  get nodes(): number {
    return this.exchange.nodes
  }

  get roundTrip(): number {
    return this.exchange.roundTrip
  }

  shareOf(_slot: number): number {
    return 1 / this.nodes
  }

  get blocks(): KeyBlocks {
    return this.site.blocks
  }

  get stats(): Stats {
    return this.site.stats
  }

  // The fields of a record on the request path: `fields[base]` is KNOWN, `fields[base + 1]` GATE, `fields[base + 2]` TAG, see `KeyTable`.

  take(slot: number, cost: number, now: number): number {
    const { fields } = this.table
    const base = slot * 5
    const known = (fields[base] as number) + cost
    if (!(known < (fields[base + 1] as number) && fields[base + 2] === this.tag)) return -1
    fields[base] = known
    this.allowed += cost
    return this.remaining(slot, now)
  }

  fits(slot: number, cost: number, _now?: number): boolean {
    const { fields } = this.table
    const base = slot * 5
    return (fields[base] as number) + cost < (fields[base + 1] as number) && fields[base + 2] === this.tag
  }

  allows(slot: number, cost: number, now: number, count = true): boolean {
    return this.fits(slot, cost, now) || (this.fullBy(slot, cost) < 0 && this.allowsSlowly(slot, cost, now, count))
  }

  fullBy(slot: number, cost: number): SourceIndex | -1 {
    const { fields } = this.table
    const base = slot * 5
    const gate = fields[base + 1] as number
    if (!(gate === FULL && fields[base + 2] === this.tag && cost >= 1)) return -1
    if (cost === 1) return ((this.table.flags[slot] as number) >> 6) as SourceIndex
    // The rejection of a request that fits in no interval must show that it never fits.
    return cost > this.site.limitOf(slot) ? -1 : this.sourceOf(slot, cost)
  }

  add(slot: number, cost: number, _now?: number): void {
    const { fields } = this.table
    const index = slot * 5
    fields[index] = sumOf(fields[index] as number, cost)
    this.allowed += cost
  }

  mark(slot: number): number {
    return this.table.fields[slot * 5] as number
  }

  untake(slot: number, mark: number, cost: number): void {
    this.table.fields[slot * 5] = mark
    this.allowed -= cost
  }

  remaining(slot: number, _now: number): number {
    return Math.max(0, this.site.limitOf(slot) - (this.table.fields[slot * 5] as number))
  }

  resetAfterMs(_slot: number, now: number): number {
    return this.rollAt - now
  }

  roll(now: number): void {
    const width = this.storePolicy.width * this.#group
    const before = (this.ordinal / this.#group) as Ordinal
    const running = runningAt(this.time, before, this.rollAt, width, now, 0)
    // The ordinal never goes back: units stay in the interval in which they were counted.
    const moves = running > before
    if (moves) this.moveTo((running * this.#group) as Ordinal)
    this.rollAt = nextRoll(this.time, moves ? running : before, width, now, moves ? undefined : this.rollAt, 0)
  }

  /** When the running interval or bucket began, on the monotonic clock. */
  get begunAt(): number {
    return this.time.monotonicAt(startOf(this.ordinal, this.storePolicy.width))
  }

  protected moveTo(ordinal: Ordinal): void {
    this.ordinal = ordinal
    this.site.movedTo(ordinal)
    this.tag = this.#tagOf(ordinal, this.#version)
  }

  /** Whether decisions are made without the store. With `failMode: 'share'`, also while the store is silent, because that costs little. */
  get storeAway(): boolean {
    return this.exchange.storeDown || (this.exchange.silent && this.policy.failMode === 'share')
  }

  /**
   * The store's time has become known. A process whose own clock was certainly ahead goes back to the others' interval. Otherwise it would
   * count alone in a later interval until they reach it. It goes back at no other time. The store has no counts of it yet, because none are
   * sent before the store's first reply.
   */
  adoptTime(now: number): void {
    const width = this.storePolicy.width * this.#group
    const ordinal = (ordinalAt(this.time.at(now), width) * this.#group) as Ordinal
    if (ordinalAt(this.time.at(now) + this.time.uncertainty(now), width) * this.#group < this.ordinal) {
      this.moveTo(ordinal)
      this.awayIn = Math.min(this.awayIn, ordinal)
    }
    this.roll(now)
  }

  invalidate(now: number, away: boolean): void {
    this.#version = (this.#version + 1) % (this.#versions - 1)
    this.tag = this.#tagOf(this.ordinal, this.#version)
    this.roll(now)
    if (away) this.awayIn = this.ordinal
  }

  adopt(now: number): void {
    const { limit } = this.policy
    const hot = this.storePolicy.hot === Number.POSITIVE_INFINITY ? this.storePolicy.hot : limit / 4
    this.storePolicy = Object.freeze({ ...this.storePolicy, limit, hot })
    this.invalidate(now, false)
  }

  /** The ordinal that a record's counts belong to. 0 for a new one. */
  ordinalOf(base: number): Ordinal {
    return (Math.floor((this.table.fields[base + TAG] as number) / this.#versions) * this.#group) as Ordinal
  }

  #tagOf(ordinal: Ordinal, version: number): number {
    return (ordinal / this.#group) * this.#versions + version
  }

  recheck(slot: number): void {
    const base = baseOf(slot)
    // The last version, which no gate has.
    this.table.fields[base + TAG] = this.#tagOf(this.ordinalOf(base), this.#versions - 1)
  }

  refundNewest(slot: number, units: number, now: number): number {
    this.refund(this.site.keyOf(slot), Number.POSITIVE_INFINITY as Ordinal, units, now)
    return units
  }

  reset(key: string, slot: number, _now: number): void {
    this.cleared?.(key, slot)
    if (slot < 0) return
    const { fields } = this.table
    const base = baseOf(slot)
    const tag = fields[base + TAG] as number
    fields.fill(0, base, base + STRIDE)
    fields[base + TAG] = tag
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    this.recheck(slot)
  }

  syncKey(id: string, now: number): void {
    const slot = this.site.findId(id)
    if (slot >= 0 && !this.exchange.storeDown) this.wantExchange(slot, now, ASKED)
  }

  askedCells(): Cell[] {
    return [{ ordinal: this.ordinal, taken: 0, given: 0 }]
  }

  usedIn(cells: readonly Cell[], _now: number): number {
    let units = 0
    for (const { ordinal, taken, given } of cells) if (ordinal === this.ordinal) units += taken - given
    return units
  }

  sourceOf(slot: number, cost: number): SourceIndex {
    if (this.site.isShared(slot)) return OVERFLOWED
    if (this.byOwn(slot, cost)) return LOCAL
    return ((this.table.flags[slot] as number) & TOLD) === 0 ? GLOBAL : ANNOUNCED
  }

  /** Returns the gate of a key that has become full, and notes by which counts. */
  fullGate(slot: number): number {
    const { flags } = this.table
    flags[slot] = ((flags[slot] as number) & OTHER_FLAGS) | (this.sourceOf(slot, 1) << FULL_BY)
    return FULL
  }

  /** When the key was last sent, on the monotonic clock. -Infinity if it never was. */
  protected sentAt(slot: number): number {
    return this.records?.at(slot).sentAt ?? Number.NEGATIVE_INFINITY
  }

  /** Queues the key for a sync, no sooner than its spacing and a running sync allow. */
  wantExchange(slot: number, now: number, reason: number): void {
    const { flags } = this.table
    if (((flags[slot] as number) & (IN_FLIGHT | DUE)) !== 0) return
    this.stats.countExchange(reason)
    const at = Math.max(now, this.sentAt(slot) + SPACING)
    flags[slot] = (flags[slot] as number) | DUE
    this.exchange.due(this, slot, at)
  }

  /** Whether each span's counts are sent, however few they are. */
  get keepsAll(): boolean {
    return this.policy.interval / this.policy.spans >= LONG_SPAN
  }

  /** A charge has counted more than fits. Counts that are synced only at the ends of spans wait until then. */
  exceeded(slot: number, now: number): void {
    if (this.jitter && !this.storeAway && this.unsyncedOf(slot) > 0) this.wantExchange(slot, now, PROOF)
  }

  sweep(from: number, now: number): number {
    return this.scan(from, now, new Batch(1), { all: false, resend: false })
  }

  undue(slot: number): void {
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~DUE
    this.recheck(slot)
  }

  collect(slot: number, now: number, batch: Batch): void {
    const flags = (this.table.flags[slot] as number) & ~DUE
    this.table.flags[slot] = flags
    if ((flags & IN_FLIGHT) === 0 && this.table.keys[slot] !== undefined) this.#send(slot, now, batch, true)
  }

  #send(slot: number, now: number, batch: Batch, due: boolean): void {
    const cells = this.toSend?.(slot, now, due) ?? []
    if (cells.length === 0) return
    this.records?.find(slot)?.sent(now)
    this.table.flags[slot] = (this.table.flags[slot] as number) | IN_FLIGHT
    batch.add(this, slot, this.entryOf(slot, cells))
  }

  protected entryOf(slot: number, cells: readonly Cell[]): SyncEntry {
    return this.syncedBlocks.entryOf(this.site.idOf(slot), cells)
  }

  scan(from: number, now: number, batch: Batch, options: ScanOptions): number {
    const { table } = this
    const end = Math.min(table.end, from + Math.min(SCAN_STEP, this.surveyed))
    for (let slot = from; slot < end; slot++) {
      if (batch.full) return slot
      if (table.keys[slot] === undefined || !this.visit(slot, now, options, batch)) continue
      this.stats.countExchange(options.resend ? RESEND : options.all ? CLOSE : SPAN_END)
      this.#send(slot, now, batch, false)
    }
    return end >= table.end ? -1 : end
  }

  settle(slot: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    if (typeof slot !== 'number') return
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~(IN_FLIGHT | TOLD)
    const key = this.records?.find(slot)
    key?.landed?.()
    if (key?.away) key.setAway(false, this.ordinal, now)
    if (this.syncedBlocks.wasReset(entry, result, now)) this.unanswered(slot, now)
    else {
      this.learn?.(slot, entry, result, sent, now)
      // Leases can't exceed a limit, because the store has granted their units.
      const over = this.records === undefined ? 0 : this.over(slot, now)
      const limit = over > 0 ? this.site.limitOf(slot) : 0
      // A limit of 0 was set after the units were counted, and has no part.
      if (limit > 0) this.stats.overshoot.raise(over / limit, now)
    }
    this.syncedBlocks.replied(slot, result, sent, now)
  }

  fail(slot: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    if (typeof slot !== 'number') return
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~IN_FLIGHT
    this.records?.find(slot)?.landed?.()
    if (alone && this.table.keys[slot] !== undefined) {
      this.records?.at(slot).setAway(true, this.ordinal, now)
      this.wantExchange(slot, now + RETRY_ALONE, RESEND)
    }
    this.unanswered(slot, now)
  }

  /** A key write has failed, or its reply is about counts from before a reset. */
  protected unanswered(slot: number, _now: number): void {
    this.recheck(slot)
  }

  late(ticket: Ticket, now: number): void {
    if (typeof ticket !== 'number') return
    const share = this.site.limitOf(ticket) / this.nodes
    const unsynced = this.unsyncedOf(ticket)
    // If a few units were sent immediately, nothing shows that more will come.
    const more = unsynced > (this.records?.find(ticket)?.flight ?? 0) || unsynced >= MANY * share
    if (more && unsynced >= Math.max(2, FILLS_FAST * share)) this.overdue(ticket, now)
  }

  overdue(ticket: Ticket, now: number): void {
    const key = typeof ticket === 'number' ? this.records?.find(ticket) : undefined
    if (key === undefined || !this.jitter || this.policy.failMode !== 'share') return
    key.setAway(true, this.ordinal, now)
    this.recheck(ticket as number)
  }

  makeRoom(now?: number): boolean {
    const { table } = this
    return this.#search.step(table, this.ordinal, now, (from, to) => {
      for (let slot = from; slot < to; slot++) {
        const flags = table.flags[slot] as number
        if (table.keys[slot] === undefined || (flags & (IN_FLIGHT | DUE)) !== 0) continue
        if ((flags & BLOCKED) !== 0 && (now === undefined || this.blocks.of(slot, now) !== undefined)) continue
        if (this.mayForget(slot)) this.site.forget(slot)
      }
    })
  }

  /** Whether the key has no confirmed units, so that its removal loses nothing. */
  protected isEmpty(slot: number): boolean {
    const { fields, flags } = this.table
    const base = baseOf(slot)
    return (
      fields[base + KNOWN] === 0 && fields[base + OTHERS] === 0 && fields[base + SENT] === 0 && ((flags[slot] as number) & ACTIVE) === 0
    )
  }

  forgotten(slot: number): void {
    this.records?.forgotten(slot)
  }

  wasExchanged(slot: number): boolean {
    return this.heardAt(slot) > Number.NEGATIVE_INFINITY
  }

  heardAt(slot: number): number {
    return this.records?.find(slot)?.syncedAt ?? Number.NEGATIVE_INFINITY
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.usedOf(slot, now) - this.site.most(this.site.limitOf(slot)))
  }

  /** The slow part of `allows`: rolls the record over, computes its gate and, if the request counts, requests syncs. */
  protected abstract allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean
  /**
   * Takes the counts of a key that the store lacks. None if there is nothing to send or to learn.
   *
   * @param due whether the key has requested its sync. Otherwise a walk has reached it
   */
  protected toSend?(slot: number, now: number, due: boolean): readonly Cell[]
  /** Takes over the store's reply to a key's counts. */
  protected learn?(slot: number, entry: SyncEntry, result: SyncResult, sent: number, now: number): void
  /** A walk has reached a key: forgets it if it is idle. Returns whether its counts must be sent now. */
  protected abstract visit(slot: number, now: number, options: ScanOptions, batch: Batch): boolean
  /** Whether a key without a running sync may be removed. Its unsent counts are put aside first. */
  protected abstract mayForget(slot: number): boolean
  /** Removes all state of a key's units beside its record. `slot` may be negative. */
  protected cleared?(key: string, slot: number): void
  /** Whether `cost` does not fit by this process's own counts alone. */
  protected abstract byOwn(slot: number, cost: number): boolean

  abstract reject(slot: number, cost: number, now: number): Rejection
  abstract explain(slot: number, cost: number, now: number): Rejection
  abstract refund(key: string, ordinal: Ordinal, units: number, now: number): void
  abstract usedOf(slot: number, now: number): number
  abstract ownOf(slot: number, now?: number): number
  abstract unsyncedOf(slot: number): number
  abstract unsyncedSince(slot: number, now: number): number
}
