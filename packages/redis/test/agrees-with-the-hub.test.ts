import { systemClock } from '@weir/core'
import { Hub } from '@weir/core/memory'
import type { HeartbeatRequest, Ordinal, StorePolicy } from '@weir/core/sync'
import { RedisServer } from '@weir/tooling/redis-servers'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, SEED } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

// Cells so wide that the running one does not change while the test runs.
const WIDTH = 86_400_000_000
const RUNNING = Math.floor(Date.now() / WIDTH)
const fixed: StorePolicy = { id: 'fixed', width: WIDTH, cells: 1, limit: 10, hot: 3, ttl: WIDTH }
const sliding: StorePolicy = { id: 'sliding', width: WIDTH, cells: 4, limit: 10, hot: 3, ttl: 8 * WIDTH }
const bucket: StorePolicy = { id: 'bucket', width: WIDTH, cells: 60, limit: 10, hot: 3, ttl: 8 * WIDTH, drain: 2 }

/** One of a few moments of resets, in different cells; 0 for none. */
function epochAt(place: number): number {
  return place === 0 ? 0 : (RUNNING - 2 + Math.floor(place / 2)) * WIDTH + place
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
      fc.record({
        ordinal: fc.integer({ min: RUNNING - 5, max: RUNNING + 2 }).map((ordinal) => ordinal as Ordinal),
        taken: units,
        given: fc.integer({ min: 0, max: 2 }),
      }),
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

/** Remaining times differ by what the test itself takes, or in their last digit; what matters is which of the lengths it is. */
const rounded = (milliseconds: number | undefined): number => Math.ceil(((milliseconds ?? Number.NaN) - 1) / 600_000)

test('random requests bring from Redis what they bring from the hub', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const hub = new Hub(systemClock)
      const store = redisStore(server.url, { namespace: freshNamespace(), publish: false })
      const connections = [0, 1, 2].map((i) => store.open({ id: `node-${i}`, clock: systemClock, announced: () => {} }))
      try {
        let cursors: [string | undefined, string | undefined] = [undefined, undefined]
        for (const { node, ...request } of steps) {
          const heartbeat = (cursor: string | undefined): HeartbeatRequest => ({ ttl: 600_000, cursor, policies: [fixed, sliding, bucket] })
          const actual = await connections[node]?.sync({ ...request, heartbeat: heartbeat(cursors[0]) })
          const wanted = hub.exchange(`node-${node}`, { ...request, heartbeat: heartbeat(cursors[1]) })
          const plain = (reply: typeof wanted | undefined): unknown => ({
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
          })
          expect(plain(actual)).toEqual(plain(wanted))
          cursors = [actual?.heartbeat?.cursor, wanted.heartbeat?.cursor]
        }
      } finally {
        for (const connection of connections) await connection.close()
      }
    }),
    { numRuns: 60, ...(process.env['FC_SEED'] === undefined ? {} : { seed: SEED }) },
  )
})
