import type { BlockReports } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import {
  type BlockChange,
  type BlockState,
  type Cell,
  lastCellOf,
  type StorePolicy,
  type SyncEntry,
  type SyncResult,
} from '../store/contract.ts'
import { type EpochTime, endOf, type Ordinal } from '../time/intervals.ts'
import type { StoreTime } from '../time/store-time.ts'

/** The sync, as seen by the blocks that it carries. */
export interface BlockExchange {
  /** The store's clock. */
  readonly time: StoreTime
  /** Requests that a change of a block is sent before `until`, on the monotonic clock. */
  changeBlock(blocks: SyncedBlocks, change: BlockChange, until: number): void
}

/** The meter of the keys. */
interface BlockedMeter {
  readonly site: SharedSite
  readonly exchange: BlockExchange
  readonly storePolicy: StorePolicy
  /** The clock that the policy's intervals follow. */
  readonly time: EpochTime
  /** The running cell. 0 if resets concern all counts, however old. */
  readonly ordinal: Ordinal
  /** The store or another process has blocked a key. */
  blockedRemotely?(slot: number, now: number): void
  /** This process resets a key. */
  resetHere?(id: string, now: number): void
}

/**
 * Syncs the blocks and resets of a policy's keys: sends those of this process, and applies those of the store and of other processes. Times
 * are of the monotonic clock, durations milliseconds, and keys as the store gets them.
 */
export class SyncedBlocks implements BlockReports {
  readonly #meter: BlockedMeter

  constructor(meter: BlockedMeter) {
    this.#meter = meter
  }

  report(key: string, kind: 'exceeded' | 'set' | 'lift', remaining: number, until: number): void {
    const { exchange, site, storePolicy: policy } = this.#meter
    const growth = kind === 'exceeded' ? site.policy.cooldownGrowth : undefined
    const epoch = kind === 'exceeded' ? site.resetAt(key) : 0
    const lasts = kind === 'lift' ? 0 : remaining
    exchange.changeBlock(this, { policy, key, kind, remaining: lasts, ...(growth && { growth }), ...(epoch > 0 && { epoch }) }, until)
  }

  reportReset(key: string, known: number, now: number): number {
    const { exchange, storePolicy: policy, time } = this.#meter
    this.#meter.resetHere?.(key, now)
    const epoch = Math.max(known + 1, Math.floor(time.at(now)))
    const until = time.monotonicAt(endOf(lastCellOf(epoch, policy.width), policy.width)) + policy.ttl
    exchange.changeBlock(this, { policy, key, kind: 'reset', remaining: 0, epoch }, until)
    return epoch
  }

  /** Sends all blocks of this process again, because the store has lost its data. */
  restore(now: number): void {
    const { exchange, site, storePolicy: policy } = this.#meter
    for (const [slot, { until, manual }] of site.blocks) {
      if (until <= now) continue
      const key = site.idOf(slot)
      exchange.changeBlock(this, { policy, key, kind: 'restore', remaining: until - now, ...(manual && { manual }) }, until)
    }
  }

  /** Applies a block or a reset that the store or another process reports. `roundTrip` if it came with a reply. */
  announced({ key, remaining, manual, epoch }: BlockState, now: number, roundTrip?: number): void {
    const { site } = this.#meter
    if (epoch !== undefined) this.reset(key, epoch, now)
    const slot = remaining > 0 ? site.locateId(key, manual === true, now) : site.findId(key)
    if (slot >= 0) this.#apply(slot, remaining, now, manual === true, roundTrip)
  }

  /** Applies the store's answer to a change of this process: `remaining` is how long the key stays blocked. */
  answered({ key, kind }: BlockChange, remaining: number, sent: number, now: number): void {
    const { exchange, site } = this.#meter
    const slot = site.locateId(key)
    if (slot < 0) return
    const known = site.blocks.of(slot, now)
    if (known !== undefined) known.slack = now - sent + exchange.time.uncertainty(now)
    this.#apply(slot, remaining, now, kind === 'set' || known?.manual === true, now - sent)
  }

  /** Applies the block in the reply to a key write, if there is one. */
  replied(slot: number, { blocked, manual }: SyncResult, sent: number, now: number): void {
    if (blocked > 0) this.#apply(slot, blocked, now, manual === true, now - sent)
  }

  #apply(slot: number, remaining: number, now: number, manual: boolean, roundTrip?: number): void {
    const { exchange, site } = this.#meter
    site.blocks.hear(slot, remaining, now, manual, exchange.time.uncertainty(now), roundTrip)
    if (remaining > 0) this.#meter.blockedRemotely?.(slot, now)
  }

  /** Applies a reset of this or another process. */
  reset(key: string, epoch: number, now: number): void {
    const { ordinal, site, storePolicy } = this.#meter
    // An older reset concerns no cell that counts, and may have been forgotten here.
    if (lastCellOf(epoch, storePolicy.width) >= ordinal - storePolicy.cells) site.reset(key, epoch, now, 'remote')
  }

  /** The key's last reset if it concerns the first of these cells. Undefined for none. */
  #epochOf(key: string, [first]: readonly Cell[]): number | undefined {
    const { site, storePolicy } = this.#meter
    const epoch = site.resetAt(key)
    return epoch > 0 && first !== undefined && first.ordinal <= lastCellOf(epoch, storePolicy.width) ? epoch : undefined
  }

  /** The key write for a key's cells, in ascending order. */
  entryOf(key: string, cells: readonly Cell[]): SyncEntry {
    const epoch = this.#epochOf(key, cells)
    return { policy: this.#meter.storePolicy, key, cells, ...(epoch !== undefined && { epoch }) }
  }

  /** Whether a key was reset after these units were counted, in this process or another one: they no longer count. */
  wasReset({ key, cells, epoch }: SyncEntry, result: SyncResult, now: number): boolean {
    if (result.epoch !== undefined) this.reset(key, result.epoch, now)
    return result.epoch !== undefined || (cells.length > 0 && this.#epochOf(key, cells) !== epoch)
  }

  /** Whether an announcement of a key is older than its last reset. */
  isOfBefore({ key, cells, epoch }: Omit<SyncEntry, 'policy'>, now: number): boolean {
    if (epoch !== undefined) this.reset(key, epoch, now)
    return cells.length > 0 && this.#epochOf(key, cells) !== epoch
  }
}
