import type { Meter } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import { type BlocksOwner, KeyBlocks } from '../keys/blocks.ts'
import { ALL_LABEL, idOfKey, keyOfId, SHARED_LABEL } from '../keys/key-id.ts'
import { KeyTable } from '../keys/key-table.ts'
import { LONGEST_KEY } from '../keys/key-text.ts'
import { Resets } from '../keys/resets.ts'
import { Slices } from '../keys/slices.ts'
import { type DecisionReason, OVERFLOWED, type RejectionReason, type SourceIndex, Stats } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import { resetsAllKeys } from './coordination.ts'
import { type Outcome, RunningCell } from './outcome.ts'
import { goesOnLocally, type Policy } from './policy.ts'
import { RejectedKeys } from './rejected-keys.ts'

/** Decides requests with new keys when the table of keys is full. */
export type Overflow = 'shared' | 'allow' | 'reject'

/** Receives the events of a limiter's keys. */
export interface LimiterEvents {
  blocked(limiter: Limiter, key: string, forMs: number, cause: 'exceeded' | 'manual' | 'remote'): void
  unblocked(limiter: Limiter, key: string, cause: 'manual' | 'remote' | 'expired'): void
  overflow(limiter: Limiter): void
  expired(limiter: Limiter, key: string, units: number): void
  freed(limiter: Limiter, key: string): void
}

/** The result of `overflow: 'allow' | 'reject'` instead of a slot. */
export const NO_SLOT = -1

/** Intervals for which a reset is remembered. A store keeps the policy's counts for as long, and decisions can't be refunded after it. */
const RESET_LIFE = 5

/** The longest id: a bounded key, and the prefix of `idOfKey`. */
const LONGEST_ID = LONGEST_KEY + 2

/** One policy in this process: its keys, their blocks, and the meter that counts them. */
export class Limiter implements SharedSite, BlocksOwner {
  policy: Policy
  readonly table: KeyTable
  readonly blocks: KeyBlocks
  readonly stats: Stats = new Stats()
  /** The resets of keys. */
  readonly resets: Resets = new Resets()
  readonly overflow: Overflow
  readonly maxKeys: number
  /** The meter. If its code is loaded later, a local meter stands in until then. */
  meter: Meter
  /** `policy` and the running interval or bucket. Decisions refer to it. */
  cell: RunningCell
  /** Whether some key has another limit than the policy's. */
  limited = false
  /** The most rejected keys. */
  readonly rejectedKeys: RejectedKeys = new RejectedKeys(this)
  readonly #limits = new Map<number, number>()
  /** Limits of single keys that take precedence over limits of requests, and the slots with such a limit. */
  #overrides: ReadonlyMap<string, number> | undefined
  readonly #overridden = new Set<number>()
  /** Sets the override of each key. Until it has finished, overrides are looked up by key. */
  #overriding: Slices | undefined
  #visiting = false
  readonly #events: LimiterEvents
  #sharedSlot = NO_SLOT
  #lastSlot = 0
  #overflowing = false
  /** The number of equal parts that limits are divided by. This process has one part. Undefined if it has the whole limit. */
  #parts: (() => number) | undefined
  /** Processes that share limits until the store has answered. */
  #expected = 1

  /** @param meter makes the meter for this limiter's keys */
  constructor(policy: Policy, meter: (site: SharedSite) => Meter, events: LimiterEvents, maxKeys: number, overflow: Overflow) {
    this.policy = policy
    this.cell = new RunningCell(policy, 0 as Ordinal)
    this.maxKeys = maxKeys
    this.overflow = overflow
    this.#events = events
    this.table = new KeyTable(maxKeys, policy.coordination === 'local' || goesOnLocally(policy) ? policy.algorithm.fields : undefined)
    this.blocks = new KeyBlocks(this)
    this.meter = meter(this)
  }

  /**
   * The slot of a key, which is added if needed. `NO_SLOT` if the table is full and `overflow` requires that.
   *
   * @param now with it, a full table also drops keys that became idle within the interval
   */
  locate(key: string, now?: number): number {
    const slot = this.table.find(key)
    return slot >= 0 ? slot : this.#locateNew(key, now)
  }

  /** Does the same as `locate`, for a key that is nearly always the same. Then it needs no look-up. */
  locateAgain(key: string): number {
    if (this.table.keys[this.#lastSlot] !== key) this.#lastSlot = this.locate(key)
    return this.#lastSlot
  }

  /** Does the same as `locateAgain`, but returns -1 for a new key. */
  findAgain(key: string): number {
    return this.table.keys[this.#lastSlot] === key ? this.#lastSlot : this.table.find(key)
  }

  /** The slot of a store key, which is added if needed. `NO_SLOT` if the table is full, unless a manual block must apply. */
  locateId(id: string, byHand = false, now?: number): number {
    const found = this.findId(id)
    // No process sends longer ids.
    if (found >= 0 || id === SHARED_LABEL || id.length > LONGEST_ID) return found
    // Keys of other processes must not replace this process's own keys, and must not use the shared counter.
    return this.#add(keyOfId(id), byHand, now)
  }

  /** The slot of a store key, or `NO_SLOT`. */
  findId(id: string): number {
    if (id === ALL_LABEL) return NO_SLOT
    return id === SHARED_LABEL ? this.#sharedSlot : this.table.find(keyOfId(id))
  }

  /**
   * The key's own slot, even if the table is full, because a manual block must apply. `NO_SLOT` if manual blocks have already added
   * `maxKeys` keys.
   */
  locateBlocked(key: string, now: number): number {
    const found = this.table.find(key)
    if (found >= 0) return found
    const slot = this.#add(key, true, now)
    if (slot === NO_SLOT) this.#overflow()
    return slot
  }

  #add(key: string, byHand: boolean, now: number | undefined): number {
    // Bounded, because writers to the store must not fill the memory.
    const adds = this.hasRoom(now) || (byHand && this.table.size < 2 * this.maxKeys)
    return adds ? this.#entered(this.table.addAnyway(key)) : NO_SLOT
  }

  /** Whether a new key fits into the table. A full table drops idle keys first. */
  hasRoom(now?: number): boolean {
    return !this.table.full || this.meter.makeRoom(now)
  }

  /** The user's key of a slot. */
  keyOf(slot: number): string {
    return this.table.keys[slot] ?? ''
  }

  /** The store key of a slot. No user's key can be mistaken for the shared counter. */
  idOf(slot: number): string {
    return slot === this.#sharedSlot ? SHARED_LABEL : idOfKey(this.keyOf(slot))
  }

  limitOf(slot: number): number {
    return this.limited ? this.#ownLimitOf(slot) : this.policy.limit
  }

  /** The limit for a request to a key, with or without a limit of its own. */
  limitFor(key: string, given: number | undefined): number {
    return this.#overrides?.get(key) ?? given ?? this.policy.limit
  }

  /** The limit that a request has set for a key. Undefined without one, or if an override takes precedence. */
  givenTo(key: string): number | undefined {
    if (!this.limited || this.#overrides?.has(key) === true) return undefined
    return this.#givenAt(this.table.find(key))
  }

  /** The rare part of `limitOf`. It is separate so that V8 always inlines `limitOf`. */
  #ownLimitOf(slot: number): number {
    return this.#partOf(this.wholeLimitOf(slot))
  }

  usualOf(slot: number): number {
    return this.#partOf(this.#overrides?.get(this.keyOf(slot)) ?? this.policy.limit)
  }

  #partOf(limit: number): number {
    return this.#parts === undefined && this.#expected === 1 ? limit : partOf(limit, this.#partsNow())
  }

  #partsNow(): number {
    return (this.#parts?.() ?? 1) * this.#expected
  }

  /** The limit of a key before it is divided. */
  wholeLimitOf(slot: number): number {
    if (this.#visiting) return this.#overrides?.get(this.keyOf(slot)) ?? this.#givenAt(slot) ?? this.policy.limit
    return this.#limits.get(slot) ?? this.policy.limit
  }

  /** The limit that a request has set for a key. */
  #givenAt(slot: number): number | undefined {
    return this.#overridden.has(slot) ? undefined : this.#limits.get(slot)
  }

  most(limit: number): number {
    const { algorithm } = this.policy
    if (algorithm.most === undefined) return limit
    const parts = this.#partsNow()
    // The size of a bucket is divided in the same way as its limit.
    return parts > 1 ? partOf(algorithm.most(limit * parts), parts) : algorithm.most(limit)
  }

  /** Whether a request costs more than a key of the policy can ever have. */
  neverFits(slot: number, cost: number): boolean {
    const limit = this.limited ? this.wholeLimitOf(slot) : this.policy.limit
    return cost > (this.policy.algorithm.most?.(limit) ?? limit)
  }

  divideLimits(parts: (() => number) | undefined): void {
    this.#parts = parts
    this.#findLimited()
    this.meter.recheck(NO_SLOT)
  }

  get expecting(): boolean {
    return this.#expected > 1
  }

  expect(processes: number): boolean {
    if (processes === this.#expected) return false
    this.#expected = processes
    this.#findLimited()
    this.meter.recheck(NO_SLOT)
    return true
  }

  /** Whether some key has a limit that takes precedence over limits of requests, even if it is not in the table. */
  get overridden(): boolean {
    return this.#overrides !== undefined
  }

  /** Whether some key has a limit from a request. */
  get given(): boolean {
    return this.#limits.size > this.#overridden.size
  }

  /**
   * Replaces the limits of single keys. They apply from the next decision. The keys are visited in slices, because tens of thousands at
   * once would block the event loop.
   *
   * @param defer calls a function soon, in another turn of the event loop
   * @param done called when all keys were visited
   */
  override(limits: ReadonlyMap<string, number> | undefined, defer: (run: () => void) => void, done: () => void): void {
    if (limits === this.#overrides) return
    this.#overrides = limits
    this.#overriding ??= new Slices(
      this.table,
      defer,
      (slot) => this.#overrideAt(slot),
      () => {
        this.#visiting = false
        this.#findLimited()
        this.meter.recheck(NO_SLOT)
        done()
      },
    )
    this.#visiting = true
    this.#findLimited()
    // Gates of any key may be wrong now.
    this.meter.recheck(NO_SLOT)
    this.#overriding.begin()
  }

  #overrideAt(slot: number): void {
    if (this.#overridden.has(slot) || this.#overrides?.has(this.keyOf(slot)) === true) this.limitTo(slot, undefined)
  }

  #findLimited(): void {
    this.limited =
      this.#parts !== undefined || this.#expected > 1 || this.#limits.size > 0 || (this.#visiting && this.#overrides !== undefined)
  }

  /** Sets the limit of a key. `undefined` means the policy's limit. Processes share counts, and each compares them with its own limit. */
  limitTo(slot: number, given: number | undefined): void {
    const override = this.#overrides?.get(this.keyOf(slot))
    // An override may equal the limit of a policy that an update changes.
    const own = override ?? (given === this.policy.limit ? undefined : given)
    if (override !== undefined) this.#overridden.add(slot)
    else this.#overridden.delete(slot)
    if (this.#limits.get(slot) === own) return
    if (own === undefined) this.#limits.delete(slot)
    else this.#limits.set(slot, own)
    this.#findLimited()
    this.meter.recheck(slot)
  }

  /** The outcome of a request to a key. */
  outcome(slot: number, reason: DecisionReason, never = false): Outcome {
    const outcome = this.cell.outcome(reason, never)
    const limit = this.limited ? this.wholeLimitOf(slot) : outcome.limit
    return limit === outcome.limit ? outcome : { ...outcome, limit }
  }

  /** Drops a key. */
  forget(slot: number): void {
    this.rejectedKeys.forget(slot)
    this.#limits.delete(slot)
    this.#overridden.delete(slot)
    this.blocks.forget(slot)
    this.meter.forgotten(slot)
    this.table.remove(slot)
    if (slot === this.#sharedSlot) this.#sharedSlot = NO_SLOT
  }

  /** Adopts a changed rule with the same counts, for example with another limit or cooldown. Counts and blocks stay. */
  adopt(policy: Policy, now: number): void {
    this.policy = policy
    this.cell = new RunningCell(policy, this.cell.ordinal)
    this.meter.adopt(now)
  }

  resetAt(id: string): number {
    return this.resets.epochOf(id)
  }

  /**
   * Resets a key's counts, for a reset of this or another process. Ends its block, unless that is manual. A reset that is already known
   * changes nothing.
   *
   * @param id `ALL_LABEL` for all keys
   * @param epoch the same as `BlockChange.epoch`
   */
  reset(id: string, epoch: number, now: number, cause: 'manual' | 'remote'): void {
    if (epoch <= this.resets.epochOf(id)) return
    if (id === ALL_LABEL) {
      this.#resetAll(epoch, now, cause)
      return
    }
    const { policy, meter, blocks } = this
    // Decisions from now on have a different serial number.
    this.cell = new RunningCell(policy, this.cell.ordinal)
    this.resets.add(id, { epoch, serial: this.cell.serial, until: now + RESET_LIFE * Math.max(policy.interval, policy.maxDuration) }, now)
    if (now >= meter.rollAt) meter.roll(now)
    const slot = this.findId(id)
    meter.reset(keyOfId(id), slot, now)
    blocks.forgive(id)
    if (slot < 0 || blocks.of(slot, now)?.manual !== false) return
    blocks.clear(slot)
    this.unblocked(this.keyOf(slot), cause)
  }

  #resetAll(epoch: number, now: number, cause: 'manual' | 'remote'): void {
    const { policy, table, meter, blocks } = this
    // No process of this version sends it.
    if (!resetsAllKeys(policy)) return
    this.cell = new RunningCell(policy, this.cell.ordinal)
    this.resets.addAll(epoch, this.cell.serial)
    if (now >= meter.rollAt) meter.roll(now)
    for (let slot = 0; slot < table.end; slot++) {
      const key = table.keys[slot]
      if (key === undefined) continue
      meter.reset(key, slot, now)
      if (blocks.of(slot, now)?.manual !== false) continue
      blocks.clear(slot)
      this.unblocked(key, cause)
    }
  }

  movedTo(ordinal: Ordinal): void {
    this.cell = new RunningCell(this.policy, ordinal)
  }

  expired(slot: number, units: number): void {
    this.#events.expired(this, this.keyOf(slot), units)
  }

  freed(slot: number): void {
    this.#events.freed(this, this.keyOf(slot))
  }

  /** The slot of the shared counter for keys that don't fit into the table. `NO_SLOT` while there is none. */
  get sharedSlot(): number {
    return this.#sharedSlot
  }

  isShared(slot: number): boolean {
    return slot === this.#sharedSlot
  }

  /** Whether new keys don't fit into the table. */
  get overflowing(): boolean {
    return this.#overflowing && this.table.full
  }

  /** Counts a rejection and the source of the counts that caused it. Called after `reject`. */
  countRejection(slot: number, cost: number, reason: RejectionReason): void {
    const shared = slot === this.#sharedSlot ? OVERFLOWED : undefined
    const source = reason === 'limit' ? this.meter.sourceOf(slot, cost) : this.blocks.sourceOf(slot)
    this.table.countRejected(slot)
    this.stats.countRejection(reason, shared ?? source)
  }

  /** Does the same as `countRejection` for the most common reason. */
  countByLimit(slot: number, source: SourceIndex): void {
    this.table.countRejected(slot)
    this.stats.countByLimit(source)
  }

  recheck(slot: number): void {
    this.meter.recheck(slot)
  }

  blocked(key: string, forMs: number, cause: 'exceeded' | 'manual' | 'remote'): void {
    this.stats.blocks[cause]++
    this.#events.blocked(this, key, forMs, cause)
  }

  unblocked(key: string, cause: 'manual' | 'remote' | 'expired'): void {
    this.#events.unblocked(this, key, cause)
  }

  tellExceeded(slot: number, remaining: number, until: number): void {
    this.meter.syncedBlocks?.report(this.idOf(slot), 'exceeded', remaining, until)
  }

  #overflow(): void {
    if (this.#overflowing) return
    this.#overflowing = true
    this.#events.overflow(this)
  }

  #locateNew(key: string, now: number | undefined): number {
    if (!this.hasRoom(now)) {
      this.#overflow()
      if (this.overflow !== 'shared') return NO_SLOT
      if (this.#sharedSlot < 0) this.#sharedSlot = this.table.reserve(SHARED_LABEL)
      return this.#sharedSlot
    }
    this.#overflowing = false
    return this.#entered(this.table.add(key))
  }

  #entered(slot: number): number {
    if (this.#overrides?.has(this.keyOf(slot)) === true) this.limitTo(slot, undefined)
    return slot
  }
}

/** Divides a limit. The result allows at least one request unless the limit is 0, just as the undivided limit does. */
function partOf(limit: number, parts: number): number {
  if (!(limit > 0) || parts === Number.POSITIVE_INFINITY) return 0
  return Math.max(1, limit / parts)
}
