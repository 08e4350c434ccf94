import assert from 'node:assert/strict'
import type { Clock } from '@weir/core'
import {
  type Announcement,
  type BlockChange,
  type Cell,
  type HeartbeatReply,
  type Ordinal,
  ordinalAt,
  type StoreConnection,
  type StorePolicy,
  type SyncReply,
  type SyncRequest,
  type SyncResult,
} from '@weir/core/sync'
import type { StoreContractFixture } from './fixture.ts'

/** Milliseconds within which every expected event must happen. */
const PATIENCE = 10_000

const PROBE = 'probe'

let started = 0

/** A process in a case of the contract, with the announcements that it received. */
export class ContractNode {
  readonly id: string
  readonly announcements: Announcement[] = []
  /** Announcements for `ContractContext.listening`, some of which arrive late. */
  readonly probes: Announcement[] = []
  connection!: StoreConnection
  readonly #now: () => number

  constructor(id: string, now: () => number) {
    this.id = id
    this.#now = now
  }

  sync(request: Partial<SyncRequest>): Promise<SyncReply> {
    return this.connection.sync({ entries: [], blocks: [], ...request })
  }

  /** Sends one key's cells. A number means units taken in the running cell. */
  async count(policy: StorePolicy, key: string, cells: number | readonly Cell[]): Promise<SyncResult> {
    const sent = typeof cells === 'number' ? [cell(ordinalAt(this.#now(), policy.width), cells)] : cells
    const reply = await this.sync({ entries: [{ policy, key, cells: sent }] })
    return defined(reply.results[0])
  }

  /** Sends units of the running cell like `count`, for a process that has received a reset. */
  async countSince(policy: StorePolicy, key: string, taken: number, epoch: number): Promise<SyncResult> {
    const cells = [cell(ordinalAt(this.#now(), policy.width), taken)]
    return defined((await this.sync({ entries: [{ policy, key, cells, epoch }] })).results[0])
  }

  /** Resets a key. Returns the milliseconds for which it stays blocked. */
  async reset(policy: StorePolicy, key: string, epoch: number): Promise<number> {
    return defined((await this.sync({ blocks: [{ policy, key, kind: 'reset', remaining: 0, epoch }] })).blocks[0])
  }

  /** Blocks a key for exceeding its limit, for a process that has received a reset. */
  async exceed(policy: StorePolicy, key: string, remaining: number, growth: BlockChange['growth'], epoch: number): Promise<number> {
    const change: BlockChange = { policy, key, kind: 'exceeded', remaining, epoch }
    return defined((await this.sync({ blocks: [growth ? { ...change, growth } : change] })).blocks[0])
  }

  /** Changes a block. Returns the remaining milliseconds. */
  async block(
    policy: StorePolicy,
    key: string,
    kind: BlockChange['kind'],
    remaining: number,
    growth?: BlockChange['growth'],
  ): Promise<number> {
    const reply = await this.sync({ blocks: [{ policy, key, kind, remaining, ...(growth && { growth }) }] })
    return defined(reply.blocks[0])
  }

  async beat(cursor: string | undefined, policies: readonly StorePolicy[], ttl: number = 60_000): Promise<HeartbeatReply> {
    return defined((await this.sync({ heartbeat: { ttl, cursor, policies } })).heartbeat)
  }
}

/** The surroundings of the contract's cases. */
export class ContractContext {
  readonly fixture: StoreContractFixture
  readonly clock: Clock
  readonly #nodes: ContractNode[] = []

  constructor(fixture: StoreContractFixture, clock: Clock) {
    this.fixture = fixture
    this.clock = clock
  }

  async node(): Promise<ContractNode> {
    const node = new ContractNode(`node-${++started}-${this.#nodes.length}`, () => this.clock.now())
    node.connection = await this.fixture.connect({
      id: node.id,
      clock: this.clock,
      announced: (one) => (one.policyId === PROBE ? node.probes : node.announcements).push(one),
    })
    this.#nodes.push(node)
    return node
  }

  async nodes(count: number): Promise<ContractNode[]> {
    return await Promise.all(Array.from({ length: count }, () => this.node()))
  }

  /** Waits until writes of `a` are announced to `b`, because a subscription may begin after the first reply. */
  async listening(a: ContractNode, b: ContractNode): Promise<void> {
    const probe = fixedPolicy({ id: PROBE, limit: 1 })
    let key = 0
    await this.eventually(async () => {
      await a.count(probe, `probe ${key++}`, 1)
      await this.pass(20)
      assert.ok(b.probes.length > 0, 'nothing is announced')
    })
  }

  pass(milliseconds: number): Promise<void> {
    if (this.fixture.pass !== undefined) return this.fixture.pass(milliseconds)
    // This timer keeps the process alive, unlike timers of the clock.
    return new Promise((resolve) => setTimeout(resolve, milliseconds))
  }

  /** The ordinal of the running cell. */
  ordinal(policy: StorePolicy): Ordinal {
    return ordinalAt(this.clock.now(), policy.width)
  }

  /** Repeats an assertion until it passes, for at most `PATIENCE` milliseconds. */
  async eventually<T>(assertion: () => Promise<T> | T): Promise<T> {
    const deadline = this.clock.monotonic() + PATIENCE
    for (;;) {
      try {
        return await assertion()
      } catch (error) {
        if (this.clock.monotonic() > deadline) throw error
        await this.pass(20)
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.connection.close()))
  }
}

/** A policy with a fixed window. Its interval is so long that it almost never ends during a case. */
export function fixedPolicy(overrides: Partial<StorePolicy> = {}): StorePolicy {
  return { id: 'fixed', width: 3_600_000, cells: 1, limit: 1000, hot: Infinity, ttl: 7_200_000, ...overrides }
}

/** A policy with a sliding window of four cells. */
export function slidingPolicy(overrides: Partial<StorePolicy> = {}): StorePolicy {
  return { id: 'sliding', width: 3_600_000, cells: 4, limit: 1000, hot: Infinity, ttl: 18_000_000, ...overrides }
}

/** A policy with a bucket of 100 units that drains 10 units in the time of a cell. */
export function bucketPolicy(overrides: Partial<StorePolicy> = {}): StorePolicy {
  return { id: 'bucket', width: 3_600_000, cells: 20, limit: 100, hot: Infinity, ttl: 72_000_000, drain: 10, ...overrides }
}

export function cell(ordinal: number, taken: number, given: number = 0): Cell {
  return { ordinal: ordinal as Ordinal, taken, given }
}

/** The units that count in a result's cells. */
export function net(result: { readonly cells: readonly Cell[] }): number {
  return result.cells.reduce((sum, { taken, given }) => sum + taken - given, 0)
}

export function defined<T>(value: T | undefined): T {
  assert.notEqual(value, undefined, 'a part of the reply is missing')
  return value as T
}

/** Checks that a time is about as long as expected: never longer, and shorter only by the duration of the case. */
export function assertAbout(actual: number, expected: number): void {
  assert.ok(actual <= expected + 1, `${actual} ms is longer than ${expected} ms`)
  assert.ok(actual > expected - PATIENCE, `${actual} ms is much shorter than ${expected} ms`)
}
