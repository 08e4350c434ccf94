import type {
  Announcement,
  HeartbeatReply,
  HeartbeatRequest,
  StatusReport,
  StorePolicy,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
  TotalAnnouncement,
} from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { ordinalAt } from '../time/intervals.ts'
import { BlockList } from './blocks.ts'
import { FixedCounts } from './fixed-cells.ts'
import { SlidingCounts } from './sliding-cells.ts'

/** What is over is looked for at most this often, milliseconds. */
const SWEEP_EVERY = 1000
/** Nodes whose time is off by more than this go by another one than the clock's, in milliseconds. */
const STEPPED = 1_000
/** How long nodes are asked for their statuses after one of them watched. */
const WATCHED_FOR = 10_000

/**
 * The meeting point of nodes in one process: all that the contract in `store.ts` asks for, in memory and synchronous.
 * `memoryStore` and the parent of `ipcStore` put a connection before it, the simulator a network with faults.
 *
 * Everything expires in bulk while exchanges come in; there are no timers.
 */
export class Hub {
  readonly #clock: Clock
  readonly #listeners = new Set<(announcement: Announcement) => void>()
  readonly #fixed = new Map<string, FixedCounts>()
  readonly #sliding = new Map<string, SlidingCounts>()
  readonly #blocks = new BlockList()
  /** Node id to the monotonic time until which it counts as live. */
  readonly #nodes = new Map<string, number>()
  readonly #statuses = new Map<string, { readonly status: string; readonly at: number }>()
  #watchedUntil = Number.NEGATIVE_INFINITY
  /** How far the nodes' time is ahead of the clock, after a step of it, and until when that holds if nobody says so again. */
  #ahead = { by: 0, until: Number.NEGATIVE_INFINITY }
  #announcements: Announcement[] = []
  #generation = 1
  #sweptAt: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#sweptAt = clock.monotonic()
  }

  /** Handles one request of one node. Blocks change first, so that the entries' results already show them. */
  exchange(nodeId: string, request: SyncRequest): SyncReply {
    const time = this.#clock.now()
    const monotonic = this.#clock.monotonic()
    const ahead = monotonic < this.#ahead.until ? this.#ahead.by : undefined
    const wall = request.time ?? time + (ahead ?? 0)
    if (monotonic - this.#sweptAt >= SWEEP_EVERY) this.#sweep(monotonic)

    const blocks = request.blocks.map((change) => {
      const changed = this.#blocks.change(change, monotonic)
      const remaining = this.#blocks.remaining(change.policy.id, change.key, monotonic)
      if (changed) this.#announce({ type: 'block', policyId: change.policy.id, key: change.key, remaining })
      return remaining
    })
    const results = request.entries.map((entry) => this.#apply(nodeId, entry, wall, monotonic))
    if (request.heartbeat === undefined) return { time, results, blocks }
    if (request.time !== undefined) {
      const by = request.time - time
      this.#ahead = { by, until: Math.abs(by) > STEPPED ? monotonic + request.heartbeat.ttl : Number.NEGATIVE_INFINITY }
    }
    const heartbeat = this.#heartbeat(nodeId, request.heartbeat, wall, monotonic)
    return { time, results, blocks, heartbeat: { ...heartbeat, ...(ahead !== undefined && { ahead }) } }
  }

  /**
   * Hears what is announced, in a later turn than the exchange that caused it.
   *
   * @returns a function that ends it
   */
  listen(listener: (announcement: Announcement) => void): () => void {
    // A wrapper of its own for each call, so that one function may listen twice.
    const own = (announcement: Announcement): void => listener(announcement)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  /** Takes a node out of the registry of live ones. */
  leave(nodeId: string): void {
    this.#nodes.delete(nodeId)
    this.#statuses.delete(nodeId)
  }

  /** Loses all data, as a store that was restarted empty. For tests. */
  lose(): void {
    this.#fixed.clear()
    this.#sliding.clear()
    this.#blocks.clear()
    this.#nodes.clear()
    this.#statuses.clear()
    this.#watchedUntil = Number.NEGATIVE_INFINITY
    this.#ahead = { by: 0, until: Number.NEGATIVE_INFINITY }
    this.#generation++
  }

  /** Cells, blocks and nodes held; 0 when all has expired. */
  get size(): number {
    this.#sweep(this.#clock.monotonic())
    let size = this.#blocks.size + this.#nodes.size
    for (const counts of this.#fixed.values()) size += counts.size
    for (const counts of this.#sliding.values()) size += counts.size
    return size
  }

  #apply(nodeId: string, entry: SyncEntry, wall: number, monotonic: number): SyncResult {
    const { policy, key } = entry
    const { cells, granted, announce } =
      policy.cells === 1
        ? this.#fixedOf(policy).apply(nodeId, entry, monotonic)
        : this.#slidingOf(policy, monotonic).apply(nodeId, entry, { wall, monotonic })
    if (announce) this.#announce({ type: 'total', policyId: policy.id, key, cells })
    return { cells, blocked: this.#blocks.remaining(policy.id, key, monotonic), granted }
  }

  #heartbeat(nodeId: string, request: HeartbeatRequest, wall: number, monotonic: number): HeartbeatReply {
    this.#nodes.set(nodeId, monotonic + request.ttl)
    if (request.status !== undefined) this.#statuses.set(nodeId, { status: request.status, at: monotonic })
    if (request.watch) this.#watchedUntil = monotonic + WATCHED_FOR
    let nodes = 0
    for (const until of this.#nodes.values()) if (until > monotonic) nodes++

    const version = parseCursor(request.cursor)
    return {
      nodes,
      generation: String(this.#generation),
      cursor: String(this.#blocks.version),
      blocks: this.#blocks.since(version, new Set(request.policies.map(({ id }) => id)), monotonic),
      hot: request.cursor === undefined ? this.#hot(request.policies, wall, monotonic) : [],
      watched: monotonic < this.#watchedUntil,
      ...(request.watch && { statuses: this.#statusList(monotonic) }),
    }
  }

  #statusList(monotonic: number): StatusReport[] {
    return Array.from(this.#statuses, ([node, { status, at }]) => ({ node, status, age: monotonic - at })).filter(
      ({ node }) => (this.#nodes.get(node) ?? 0) > monotonic,
    )
  }

  #hot(policies: readonly StorePolicy[], wall: number, monotonic: number): TotalAnnouncement[] {
    return policies.flatMap((policy) => {
      const running = ordinalAt(wall, policy.width)
      const found =
        policy.cells === 1
          ? this.#fixedOf(policy).hot(running)
          : this.#slidingOf(policy, monotonic).hot(running, policy, { wall, monotonic })
      return Array.from(found, ({ key, cells }) => ({ type: 'total' as const, policyId: policy.id, key, cells }))
    })
  }

  /** Delivery waits for a later turn: a listener that syncs at once must not find the hub in the middle of a request. */
  #announce(announcement: Announcement): void {
    this.#announcements.push(announcement)
    if (this.#announcements.length > 1) return
    this.#clock.defer(() => {
      const announcements = this.#announcements
      this.#announcements = []
      for (const one of announcements) for (const listener of this.#listeners) listener(one)
    })
  }

  #sweep(monotonic: number): void {
    this.#sweptAt = monotonic
    for (const counts of this.#fixed.values()) counts.sweep(monotonic)
    for (const counts of this.#sliding.values()) counts.sweep(monotonic)
    this.#blocks.sweep(monotonic)
    for (const [nodeId, until] of this.#nodes) if (until <= monotonic) this.leave(nodeId)
  }

  #fixedOf(policy: StorePolicy): FixedCounts {
    let counts = this.#fixed.get(policy.id)
    if (counts === undefined) this.#fixed.set(policy.id, (counts = new FixedCounts()))
    return counts
  }

  #slidingOf(policy: StorePolicy, monotonic: number): SlidingCounts {
    let counts = this.#sliding.get(policy.id)
    if (counts === undefined) this.#sliding.set(policy.id, (counts = new SlidingCounts(monotonic)))
    return counts
  }
}

/** A cursor that is not one of ours asks for everything, like none. */
function parseCursor(cursor: string | undefined): number | undefined {
  const version = Number(cursor ?? Number.NaN)
  return Number.isSafeInteger(version) ? version : undefined
}
