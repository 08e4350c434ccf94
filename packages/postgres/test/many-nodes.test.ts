import { type Algorithm, fixedWindow, tokenBucket } from '@weir/core'
import {
  type BlockChange,
  type DecidedPolicy,
  type Decider,
  type Ordinal,
  ordinalAt,
  type StorePolicy,
  type SyncEntry,
} from '@weir/core/sync'
import { SeededRandom } from '@weir/testing'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { expect, test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()
const HOUR = 3_600_000
const base = { width: HOUR, limit: 1e9, hot: Number.POSITIVE_INFINITY, ttl: 20 * HOUR }
const POLICIES: readonly StorePolicy[] = [
  { ...base, id: 'fixed', cells: 1 },
  { ...base, id: 'sliding', cells: 4 },
  { ...base, id: 'bucket', cells: 20, drain: 1 },
]
const NODES = 12
const EXCHANGES = 4
const KEYS = 30

const LOCK_TIMEOUT = '55P03'

function unlessLocked(error: Error): undefined {
  if ((error.cause as { code?: string } | undefined)?.code !== LOCK_TIMEOUT) throw error
}

describe('many nodes', () => {
  test('exchanges of the same keys in any order do not lock each other out, and all that they say is counted', async () => {
    const schema = freshSchema()
    const store = postgresStore(here.server.url, { schema, publish: false, timeout: 30_000 })
    const nodes = Array.from({ length: NODES }, () => new TestNode(store))
    await Promise.all(nodes.map((node) => node.beat()))
    const deadlocks = `SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'`
    const before = await here.server.sql(deadlocks)
    const random = new SeededRandom('many nodes')
    // One cell for the whole test, even if the hour ends meanwhile.
    const now = ordinalAt(Date.now(), HOUR)
    const entriesOf = (taken: number): SyncEntry[] => {
      const entries = POLICIES.flatMap((policy) =>
        Array.from({ length: KEYS }, (_, i) => {
          const cells = [
            { ordinal: now, taken, given: 0 },
            ...(policy.cells === 4 ? [{ ordinal: (now - 1) as Ordinal, taken, given: 0 }] : []),
          ]
          return { policy, key: `k${i}`, cells }
        }),
      )
      return entries.sort(() => random.next() - 0.5)
    }
    for (let round = 1; round <= 3; round++) {
      const requests = nodes.flatMap((node, n) =>
        Array.from({ length: EXCHANGES }, (_, i) => {
          const change = { policy: POLICIES[i % 3] as StorePolicy, key: `k${n}`, kind: 'set', remaining: HOUR } as const
          const reset: BlockChange = { ...change, key: `reset ${i}`, kind: 'reset', remaining: 0, epoch: Date.now() }
          const request = { entries: entriesOf(round), blocks: i === 0 ? [change, reset] : [] }
          // On a busy machine waiting for a lock can time out. The process then sends the same again.
          return node.eventually(() => node.connection.sync(request).catch(unlessLocked))
        }),
      )
      for (const { results, blocks } of await Promise.all(requests)) expect([...results, ...blocks]).not.toContain(undefined)
    }
    const { results } = await (nodes[0] as TestNode).connection.sync({ entries: entriesOf(0), blocks: [] })
    for (const result of results) {
      const taken = result?.cells.reduce((sum, cell) => sum + cell.taken, 0)
      expect(taken).toBe(3 * NODES * (result?.cells.length ?? 0))
    }
    // PostgreSQL updates its statistics when a connection ends.
    await Promise.all(nodes.map((node) => node.close()))
    expect(await here.server.sql(deadlocks)).toBe(before)
  })

  test('of one key as many requests are allowed as the limit says, however many nodes ask at once', async () => {
    const store = postgresStore(here.server.url, { schema: freshSchema(), publish: false, timeout: 30_000 })
    const nodes = Array.from({ length: 4 }, () => new TestNode(store))
    await Promise.all(nodes.map((node) => node.beat()))
    const deciders = await Promise.all(nodes.map((node) => node.connection.decider?.() as Promise<Decider>))
    for (const algorithm of [fixedWindow(), tokenBucket()]) {
      const step = algorithm.step as NonNullable<Algorithm['step']>
      const options = { name: 'p', id: algorithm.name, limit: 40, interval: 10_000 * HOUR }
      const policy: DecidedPolicy = { id: algorithm.name, step, parameters: step.parameters(options as never) }
      const asked = deciders.flatMap((decider) =>
        Array.from({ length: 25 }, (_, i) => {
          const time = Date.now()
          const question = { policy, key: 'k', kind: 'take', units: 1, limit: 40, at: time } as const
          return decider.decide({ sequence: i + 1, lane: i, time, questions: [question] })
        }),
      )
      const verdicts = await Promise.all(asked)
      expect(verdicts.filter((one) => one?.[0]?.allowed).length).toBe(40)
    }
    await Promise.all(nodes.map((node) => node.close()))
  })
})
