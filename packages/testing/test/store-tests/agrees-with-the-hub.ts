import { type Store, systemClock } from '@weir/core'
import { Hub } from '@weir/core/memory'
import type { HeartbeatRequest, Ordinal, StoreConnection, StorePolicy, SyncReply } from '@weir/core/sync'
import fc from 'fast-check'
import { expect } from 'vitest'

// Cells are so long that the running one does not change while the test runs.
const WIDTH = 86_400_000_000
const RUNNING = Math.floor(Date.now() / WIDTH)
const fixed: StorePolicy = { id: 'fixed', width: WIDTH, cells: 1, limit: 10, hot: 3, ttl: WIDTH }
const sliding: StorePolicy = { id: 'sliding', width: WIDTH, cells: 4, limit: 10, hot: 3, ttl: 8 * WIDTH }
const bucket: StorePolicy = { id: 'bucket', width: WIDTH, cells: 60, limit: 10, hot: 3, ttl: 8 * WIDTH, drain: 2 }

export interface Comparison {
  /** Opens an empty store. */
  open(): Store
  /** One store serves all runs, because opening one takes long. Default: each run has its own. */
  readonly shared?: boolean
  readonly runs: number
  /** Milliseconds after which no further run starts. Default: all runs are made. */
  readonly within?: number
  /** The range of cells that get units, relative to the running one. Default -5 and 2. */
  readonly cells?: readonly [number, number]
  /** The number of cells before the running one for which there may be resets. Default 2. */
  readonly resets?: number
  /** Whether a process may refund more than it has sent. Default true. */
  readonly unsound?: boolean
}

/** Random requests of three processes. */
function requests({ cells: [from, to] = [-5, 2], resets = 2, unsound = true }: Comparison) {
  /** One of a few moments of resets, in different cells. 0 for none. */
  const epochAt = (place: number): number => {
    const cell = Math.min(RUNNING, RUNNING - resets + Math.floor(place / 2))
    return place === 0 ? 0 : cell * WIDTH + place
  }
  const units = fc.oneof(
    fc.integer({ min: 0, max: 6 }),
    fc.integer({ min: 0, max: 24 }).map((quarters) => quarters / 4),
  )
  const entry = fc.record(
    {
      policy: fc.constantFrom(fixed, sliding, bucket),
      key: fc.constantFrom('x', 'y:1', '__proto__', 'z'.repeat(300)),
      cells: fc.uniqueArray(
        fc
          .record({
            ordinal: fc.integer({ min: RUNNING + from, max: RUNNING + to }).map((ordinal) => ordinal as Ordinal),
            taken: units,
            given: fc.integer({ min: 0, max: 2 }),
          })
          .map((cell) => (unsound ? cell : { ...cell, given: Math.min(cell.given, cell.taken) })),
        { minLength: 1, maxLength: 3, selector: ({ ordinal }) => ordinal },
      ),
      epoch: fc.integer({ min: 1, max: 4 }).map(epochAt),
    },
    { requiredKeys: ['policy', 'key', 'cells'] },
  )
  const block = fc
    .record({
      policy: fc.constantFrom(fixed, sliding, bucket),
      key: fc.constantFrom('x', 'y:1', 'z'.repeat(300)),
      kind: fc.constantFrom('exceeded', 'set', 'restore', 'lift', 'reset'),
      remaining: fc.constantFrom(600_000, 1_200_000),
      manual: fc.boolean(),
      epoch: fc.nat(4).map(epochAt),
    })
    .map(({ manual, epoch, kind, ...rest }) => ({
      ...rest,
      kind,
      ...(manual && kind === 'restore' && { manual: true as const }),
      ...((kind === 'reset' || (kind === 'exceeded' && epoch > 0)) && { epoch: Math.max(epoch, epochAt(1)) }),
    }))
  const step = fc.record({
    node: fc.nat(2),
    entries: fc.uniqueArray(entry, { maxLength: 4, selector: ({ policy, key }) => `${policy.id} ${key}` }),
    blocks: fc.uniqueArray(block, { maxLength: 2, selector: ({ policy, key }) => `${policy.id} ${key}` }),
  })
  return fc.array(step, { maxLength: 25 })
}

/** Remaining times differ by the duration of the test, or in their last digit. Only the kind of length matters. */
const rounded = (milliseconds: number | undefined): number => Math.ceil(((milliseconds ?? Number.NaN) - 1) / 600_000) + 0

/** A store, the hub that it is compared with, and connections to both. */
class Pair {
  readonly hub = new Hub(systemClock)
  readonly connections: readonly StoreConnection[]

  constructor(store: Store) {
    this.connections = [0, 1, 2].map((i) => store.open({ id: `node-${i}`, clock: systemClock, announced: () => {} }))
  }

  async close(): Promise<void> {
    for (const connection of this.connections) await connection.close()
  }
}

/** The parts of a reply that both stores must agree on. */
function plain(reply: SyncReply | undefined): unknown {
  return {
    results: reply?.results.map((result) => ({ ...result, blocked: rounded(result?.blocked) })),
    blocks: reply?.blocks.map(rounded),
    nodes: reply?.heartbeat?.nodes,
    changed: reply?.heartbeat?.blocks
      .map(({ policyId, key, remaining, manual, epoch }) => `${policyId} ${key} ${rounded(remaining)} ${manual} ${epoch}`)
      .sort(),
    hot: reply?.heartbeat?.hot
      .filter(({ cells }) => cells.some(({ ordinal }) => ordinal >= RUNNING))
      .map(({ policyId, key, epoch }) => `${policyId} ${key} ${epoch}`)
      .sort(),
  }
}

/** Checks that a store and the hub reply alike to random requests. @throws the difference */
export async function agreesWithTheHub(comparison: Comparison): Promise<void> {
  const { open, shared = false, runs, within } = comparison
  const one = shared ? new Pair(open()) : undefined
  let run = 0
  const property = fc.asyncProperty(requests(comparison), async (steps) => {
    const pair = one ?? new Pair(open())
    // Each run has its own keys, and starts with a process that starts.
    const prefix = `${++run} `
    const named = <T extends { readonly key: string }>(one: T): T => ({ ...one, key: prefix + one.key })
    let cursors: [string | undefined, string | undefined] = [undefined, undefined]
    try {
      for (const { node, ...given } of steps) {
        const request = { entries: given.entries.map(named), blocks: given.blocks.map(named) }
        const heartbeat = (cursor: string | undefined): HeartbeatRequest => ({ ttl: 600_000, cursor, policies: [fixed, sliding, bucket] })
        const actual = await pair.connections[node]?.sync({ ...request, heartbeat: heartbeat(cursors[0]) })
        const wanted = pair.hub.exchange(`node-${node}`, { ...request, heartbeat: heartbeat(cursors[1]) })
        expect(plain(actual)).toEqual(plain(wanted))
        cursors = [actual?.heartbeat?.cursor, wanted.heartbeat?.cursor]
      }
    } finally {
      if (pair !== one) await pair.close()
    }
  })
  await fc.assert(property, { numRuns: runs, ...(within !== undefined && { interruptAfterTimeLimit: within }) })
  await one?.close()
}
