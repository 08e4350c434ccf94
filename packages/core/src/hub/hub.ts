import {
  type Announcement,
  type BlockState,
  type HeartbeatReply,
  type HeartbeatRequest,
  lastCellOf,
  type RulesReport,
  type Shape,
  type StatusReport,
  type StorePolicy,
  type SyncEntry,
  type SyncReply,
  type SyncRequest,
  type SyncResult,
  shapeOf,
  type TotalAnnouncement,
} from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { ordinalAt } from '../time/intervals.ts'
import type { Account } from './account.ts'
import { BlockList } from './blocks.ts'
import { BucketCounts } from './bucket-counts.ts'
import type { Applied, Times } from './cell.ts'
import { fineClock } from './fine-clock.ts'
import { FixedCounts } from './fixed-cells.ts'
import { LeaseBook } from './leases.ts'
import { type Counts, PolicyCounts } from './policy-counts.ts'
import { type RowsChanged, readRow, rowOf } from './rows.ts'
import { SlidingCounts } from './sliding-cells.ts'

/** Shortest time between two searches for expired data, in milliseconds. */
const SWEEP_EVERY = 1000
/** Milliseconds. A larger difference between the processes' time and the clock means that the clock was stepped. */
const STEPPED = 1_000
/** Milliseconds for which processes report their statuses after one of them watched. */
const WATCHED_FOR = 10_000
/** Milliseconds for which a text about rules is returned after a process reported it, and the most texts that are kept. */
const RULES_KEPT = 60_000
const MOST_RULES = 64

/**
 * The store in memory: implements the contract in `store/contract.ts` synchronously. `memoryStore` and the parent of `ipcStore` put a
 * connection before it, and the simulator puts a network with faults before it.
 *
 * Everything expires in bulk while syncs arrive. There are no timers.
 */
export class Hub {
  readonly clock: Clock
  readonly #listeners = new Set<(announcement: Announcement) => void>()
  readonly #counts: Readonly<Record<Shape, PolicyCounts>> = {
    fixed: new PolicyCounts(() => new FixedCounts()),
    sliding: new PolicyCounts((monotonic) => new SlidingCounts(monotonic)),
    bucket: new PolicyCounts((monotonic) => new BucketCounts(monotonic)),
  }
  readonly #blocks: BlockList
  readonly #leases: LeaseBook
  /** The monotonic time until which a process counts as live, by its id. */
  readonly #nodes = new Map<string, number>()
  readonly #statuses = new Map<string, { readonly status: string; readonly at: number }>()
  #watchedUntil = Number.NEGATIVE_INFINITY
  /** Rules that processes report, the newest last. */
  readonly #rules = new Map<string, { readonly node: string; readonly until: number }>()
  /** Milliseconds by which the processes' time is ahead of the clock after a step, and the monotonic time until which that is valid. */
  #ahead = { by: 0, until: Number.NEGATIVE_INFINITY }
  #announcements: Announcement[] = []
  /** Undefined until a process opens a decider. */
  #decisions: { readonly size: number; clear(): void; sweep(): void } | undefined
  /** The log of manual actions, the newest one first. An entry counts until this time on the clock. */
  readonly audited: { readonly name: string; readonly entry: string; readonly until: number }[] = []
  /** Receives the rows that must survive a restart of this process, if something keeps them. */
  readonly changed: RowsChanged | undefined
  #generation: number
  #sweptAt: number

  /**
   * @param changed - keeps rows for `restore`
   * @param origin - larger than in each former life whose rows are restored, so that processes notice the loss of all counts
   */
  constructor(clock: Clock, changed?: RowsChanged, origin = 0) {
    this.clock = fineClock(clock)
    this.changed = changed
    this.#blocks = new BlockList(origin, changed)
    this.#leases = new LeaseBook(changed)
    this.#generation = origin + 1
    this.#sweptAt = clock.monotonic()
  }

  /**
   * Handles one sync of one process. Blocks change first, so that the entries' results already show them.
   *
   * @param account - pays for the memory. Parts that exceed it fail alone. Without one there is no bound.
   */
  exchange(nodeId: string, request: SyncRequest, account?: Account): SyncReply {
    const time = this.clock.now()
    const monotonic = this.clock.monotonic()
    const ahead = monotonic < this.#ahead.until ? this.#ahead.by : undefined
    const wall = request.time ?? time + (ahead ?? 0)
    if (monotonic - this.#sweptAt >= SWEEP_EVERY) this.#sweep(monotonic)

    const blocks = request.blocks.map((change) => {
      const { policy, key, kind, epoch = 0 } = change
      const changed =
        kind === 'reset' ? this.#reset(policy, key, epoch, monotonic, wall, account) : this.#blocks.change(change, monotonic, account)
      if (changed === undefined) return undefined
      if (changed) this.#announce({ type: 'block', ...this.#blockOf(policy.id, key, monotonic) })
      return this.#blocks.remaining(policy.id, key, monotonic)
    })
    const results = request.entries.map((entry) => this.#apply(nodeId, entry, wall, monotonic, account))
    if (request.heartbeat === undefined) return { time, results, blocks }
    if (request.time !== undefined) {
      const by = request.time - time
      this.#ahead = { by, until: Math.abs(by) > STEPPED ? monotonic + request.heartbeat.ttl : Number.NEGATIVE_INFINITY }
    }
    const heartbeat = this.#heartbeat(nodeId, request.heartbeat, wall, monotonic)
    return { time, results, blocks, heartbeat: { ...heartbeat, ...(ahead !== undefined && { ahead }) } }
  }

  /**
   * Calls a listener with each announcement, in a later turn of the event loop than the sync that caused it.
   *
   * @returns a function that removes the listener
   */
  listen(listener: (announcement: Announcement) => void): () => void {
    // A wrapper of its own for each call, so that one function may listen twice.
    const own = (announcement: Announcement): void => listener(announcement)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  /** The decider for requests. The first process that needs it makes it. */
  decisions<D extends { readonly size: number; clear(): void; sweep(): void }>(make: (clock: Clock) => D): D {
    this.#decisions ??= make(this.clock)
    return this.#decisions as D
  }

  /** Removes a process from the registry of live processes. */
  leave(nodeId: string): void {
    this.#nodes.delete(nodeId)
    this.#statuses.delete(nodeId)
  }

  /** Loses all data, like a store that restarts without its data. For tests. */
  lose(): void {
    for (const counts of Object.values(this.#counts)) counts.clear()
    this.#decisions?.clear()
    this.#blocks.clear()
    this.#leases.clear()
    this.#nodes.clear()
    this.#statuses.clear()
    this.#rules.clear()
    this.#watchedUntil = Number.NEGATIVE_INFINITY
    this.#ahead = { by: 0, until: Number.NEGATIVE_INFINITY }
    this.audited.length = 0
    this.#generation++
  }

  /**
   * Takes over a row of a former life, before any sync.
   *
   * @returns its name, or undefined if it has expired, can't be read, or the account is used up
   */
  restore(value: unknown, account?: Account): string | undefined {
    const row = readRow(value)
    const now = this.clock.monotonic()
    if (row === undefined) return undefined
    if (row.type === 'block') return this.#blocks.restore(row, now, account) ? rowOf('block', row.policyId, row.key) : undefined
    if (row.type === 'lease') return this.#leases.restore(row, now, account) ? row.name : undefined
    if (row.until <= now) return undefined
    this.audited.push(row)
    this.audited.sort((a, b) => b.until - a.until)
    return row.name
  }

  /** Whether this many live processes are registered already, without this one. */
  isFull(nodeId: string, most: number): boolean {
    if (this.#nodes.size < most || this.#nodes.has(nodeId)) return false
    // If all of them have ended, no sync removes them.
    const monotonic = this.clock.monotonic()
    if (monotonic - this.#sweptAt >= SWEEP_EVERY) this.#sweep(monotonic)
    return this.#nodes.size >= most
  }

  /** The number of cells, leases, blocks, processes and decided keys. It is 0 once everything has expired. */
  get size(): number {
    this.#sweep(this.clock.monotonic())
    const counts = Object.values(this.#counts).reduce((sum, { size }) => sum + size, 0)
    return counts + this.#leases.size + this.#blocks.size + this.#nodes.size + (this.#decisions?.size ?? 0)
  }

  #apply(nodeId: string, entry: SyncEntry, wall: number, monotonic: number, account: Account | undefined): SyncResult | undefined {
    const { policy, key } = entry
    if (entry.ask) this.#announce({ type: 'ask', policyId: policy.id, key })
    if (entry.lease !== undefined) {
      const granted = this.#leases.ask(nodeId, policy, key, entry.lease, wall, monotonic, account)
      if (granted === undefined) return undefined
      if (granted.news !== undefined) this.#announce(granted.news)
      return { cells: [], lease: granted.reply, ...this.#blockedOf(policy.id, key, monotonic) }
    }
    const epoch = this.#epochOf(entry, monotonic)
    const counted = entry.epoch ?? 0
    if (epoch > counted) return this.#ofBefore(nodeId, entry, epoch, wall, monotonic, account)
    // The process knows a reset that this hub has lost.
    if (epoch < counted) this.#reset(policy, key, counted, monotonic, wall, account)
    const applied = this.#count(nodeId, entry, { wall, monotonic }, account)
    if (applied === undefined) return undefined
    const { cells, announce } = applied
    if (announce) this.#announce({ type: 'total', policyId: policy.id, key, cells, ...(counted > 0 && { epoch: counted }) })
    return { cells, ...this.#blockedOf(policy.id, key, monotonic) }
  }

  #count(nodeId: string, entry: SyncEntry, times: Times, account: Account | undefined): Applied | undefined {
    const { policy } = entry
    return this.#counts[shapeOf(policy)].of(policy, times.monotonic, account)?.apply(nodeId, entry, times, account)
  }

  #countsOf(policy: StorePolicy): Counts | undefined {
    return this.#counts[shapeOf(policy)].find(policy)
  }

  /** Answers an entry with counts from before a reset: writes nothing, and returns the reset. */
  #ofBefore(
    nodeId: string,
    entry: SyncEntry,
    epoch: number,
    wall: number,
    monotonic: number,
    account: Account | undefined,
  ): SyncResult | undefined {
    const { policy, key } = entry
    const asking = { policy, key, cells: entry.cells.map(({ ordinal }) => ({ ordinal, taken: 0, given: 0 })) }
    const total = this.#count(nodeId, asking, { wall, monotonic }, account)
    return total && { cells: total.cells, epoch, ...this.#blockedOf(policy.id, key, monotonic) }
  }

  /** The last reset of an entry's key, if it concerns the entry's first cell. Otherwise 0. */
  #epochOf({ policy: { id, width }, key, cells: [first] }: Pick<SyncEntry, 'policy' | 'key' | 'cells'>, monotonic: number): number {
    const epoch = this.#blocks.epoch(id, key, monotonic)
    return epoch > 0 && (first === undefined || first.ordinal <= lastCellOf(epoch, width)) ? epoch : 0
  }

  #reset(policy: StorePolicy, key: string, epoch: number, monotonic: number, wall: number, account?: Account): boolean | undefined {
    const changed = this.#blocks.reset(policy, key, epoch, monotonic, wall, account)
    if (changed !== true) return changed
    this.#countsOf(policy)?.reset(key, lastCellOf(epoch, policy.width))
    return true
  }

  #blockOf(policyId: string, key: string, monotonic: number): BlockState {
    const { blocked, manual } = this.#blockedOf(policyId, key, monotonic)
    const epoch = this.#blocks.epoch(policyId, key, monotonic)
    return { policyId, key, remaining: blocked, ...(manual && { manual }), ...(epoch > 0 && { epoch }) }
  }

  #blockedOf(policyId: string, key: string, monotonic: number): Pick<SyncResult, 'blocked' | 'manual'> {
    const blocked = this.#blocks.remaining(policyId, key, monotonic)
    return blocked > 0 && this.#blocks.manual(policyId, key) ? { blocked, manual: true } : { blocked }
  }

  #heartbeat(nodeId: string, request: HeartbeatRequest, wall: number, monotonic: number): HeartbeatReply {
    this.#nodes.set(nodeId, monotonic + request.ttl)
    if (request.status !== undefined) this.#statuses.set(nodeId, { status: request.status, at: monotonic })
    if (request.watch) this.#watchedUntil = monotonic + WATCHED_FOR
    let nodes = 0
    for (const until of this.#nodes.values()) if (until > monotonic) nodes++

    const cursor = parseCursor(request.cursor)
    // A cursor of the future is from a former life, before the clock was set back.
    const version = cursor !== undefined && cursor > this.#blocks.version ? undefined : cursor
    return {
      nodes,
      generation: String(this.#generation),
      cursor: String(this.#blocks.version),
      blocks: this.#blocks.since(version, new Set(request.policies.map(({ id }) => id)), monotonic),
      hot: request.cursor === undefined ? this.#hot(request.policies, wall, monotonic) : [],
      ...(request.leases && { leases: this.#leases.news(request.policies, monotonic) }),
      watched: monotonic < this.#watchedUntil,
      ...(request.watch && { statuses: this.#statusList(monotonic) }),
      ...(request.rules !== undefined && { rules: this.#otherRules(nodeId, request.rules, monotonic) }),
    }
  }

  #otherRules(node: string, own: string, monotonic: number): RulesReport[] {
    this.#rules.delete(own)
    this.#rules.set(own, { node, until: monotonic + RULES_KEPT })
    for (const [rules, { until }] of this.#rules) if (until <= monotonic || this.#rules.size > MOST_RULES) this.#rules.delete(rules)
    return Array.from(this.#rules, ([rules, { node: teller }]) => ({ node: teller, rules })).filter(({ rules }) => rules !== own)
  }

  #statusList(monotonic: number): StatusReport[] {
    return Array.from(this.#statuses, ([node, { status, at }]) => ({ node, status, age: monotonic - at })).filter(
      ({ node }) => (this.#nodes.get(node) ?? 0) > monotonic,
    )
  }

  #hot(policies: readonly StorePolicy[], wall: number, monotonic: number): TotalAnnouncement[] {
    return policies.flatMap((policy) => {
      const running = ordinalAt(wall, policy.width)
      const found = this.#countsOf(policy)?.hot(running, policy, { wall, monotonic })
      return Array.from(found ?? [], ({ key, cells }) => {
        const epoch = this.#epochOf({ policy, key, cells }, monotonic)
        return { type: 'total' as const, policyId: policy.id, key, cells, ...(epoch > 0 && { epoch }) }
      })
    })
  }

  /** Delivers in a later turn of the event loop: a listener that syncs immediately must not find the hub in the middle of a request. */
  #announce(announcement: Announcement): void {
    this.#announcements.push(announcement)
    if (this.#announcements.length > 1) return
    this.clock.defer(() => {
      const announcements = this.#announcements
      this.#announcements = []
      for (const one of announcements) for (const listener of this.#listeners) listener(one)
    })
  }

  #sweep(monotonic: number): void {
    this.#sweptAt = monotonic
    for (const counts of Object.values(this.#counts)) counts.sweep(monotonic)
    this.#decisions?.sweep()
    this.#blocks.sweep(monotonic)
    this.#leases.sweep(monotonic)
    for (const [nodeId, until] of this.#nodes) if (until <= monotonic) this.leave(nodeId)
  }
}

/** An unknown cursor requests everything, like no cursor. */
function parseCursor(cursor: string | undefined): number | undefined {
  const version = Number(cursor ?? Number.NaN)
  return Number.isSafeInteger(version) ? version : undefined
}
