import { systemClock } from '@weir/core'
import { Hub } from '@weir/core/memory'
import type { Cell, Ordinal, StorePolicy } from '@weir/core/sync'
import { RedisServer } from '@weir/tooling/redis-servers'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

const loaded = vi.hoisted(() => ({ times: 0 }))

vi.mock('../src/scripts/exchange-with-buckets.ts', async (original) => {
  loaded.times++
  return original()
})

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

/** Half of this is longer than any call takes on a busy machine. */
const WIDTH = 60_000
/** A bucket of 40 units. One unit drains per cell. */
const policy: StorePolicy = { id: 'bucket', width: WIDTH, cells: 60, limit: 40, hot: 20, ttl: 120 * WIDTH, drain: 1 }

test('the script of buckets is no part of the other, and is not loaded with the store', async () => {
  await import('../src/index.ts')
  expect(loaded.times).toBe(0)
  const { EXCHANGE } = await import('../src/scripts/exchange.ts')
  const { EXCHANGE_WITH_BUCKETS } = await import('../src/scripts/exchange-with-buckets.ts')
  expect(EXCHANGE_WITH_BUCKETS).toContain('groupAt')
  expect(EXCHANGE).not.toContain('groupAt')
})

const units = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.integer({ min: 1, max: 40 }).map((quarters) => quarters / 4),
)
const step = fc.record({
  node: fc.nat(2),
  /** In cells. */
  pass: fc.oneof({ weight: 5, arbitrary: fc.nat(6) }, { weight: 1, arbitrary: fc.nat(150) }),
  taken: fc.array(fc.record({ ago: fc.integer({ min: -1, max: 70 }), units }), { maxLength: 3 }),
  refunded: fc.integer({ min: 0, max: 2 }),
  rejected: fc.integer({ min: 0, max: 2 }).map((units) => 7 * units),
  /** The units that the process has confirmed. */
  level: fc.constantFrom(0, 0, 0, 10, 30, 55),
  /** An earlier batch is sent again, late. */
  again: fc.option(fc.nat(20), { nil: undefined }),
  maxDebt: fc.constantFrom(undefined, undefined, 5),
})

test('random late, doubled and partly sent batches bring from Redis what they bring from the hub', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const hub = new Hub(systemClock)
      const store = redisStore(server.url, { ...PATIENT, namespace: freshNamespace(), publish: false })
      const connections = [0, 1, 2].map((i) => store.open({ id: `node-${i}`, clock: systemClock, announced: () => {} }))
      // The middle of a cell, because the call itself takes time.
      let time = (Math.floor(Date.now() / WIDTH) + 0.5) * WIDTH
      const counts = new Map<string, { taken: number; given: number; rejected: number }>()
      const sent: { node: number; cells: Cell[] }[] = []
      try {
        for (const { node, pass, taken, refunded, rejected, level, again, maxDebt } of steps) {
          time += pass * WIDTH
          const cells = new Map<number, Cell>()
          for (const { ago, units } of taken) {
            const ordinal = Math.floor(time / WIDTH) - ago
            const id = `${node} ${ordinal}`
            const known = counts.get(id) ?? { taken: 0, given: 0, rejected: 0 }
            const taken = known.taken + (rejected === 14 ? 0 : units)
            const more = { taken, given: Math.min(taken, known.given + refunded), rejected: known.rejected + rejected }
            counts.set(id, more)
            cells.set(ordinal, { ordinal: ordinal as Ordinal, ...more, ...(level > 0 && { level }) })
          }
          const fresh = { node, cells: [...cells.values()].toSorted((one, other) => one.ordinal - other.ordinal) }
          if (fresh.cells.length === 0) fresh.cells.push({ ordinal: Math.floor(time / WIDTH) as Ordinal, taken: 0, given: 0 })
          const batch = again === undefined ? fresh : (sent[again % Math.max(1, sent.length)] ?? fresh)
          sent.push(fresh)
          const of = maxDebt === undefined ? policy : { ...policy, maxDebt }
          const request = { time, entries: [{ policy: of, key: 'k', cells: batch.cells }], blocks: [] }
          const actual = (await connections[batch.node]?.sync(request))?.results[0]?.cells[0]
          const wanted = hub.exchange(`node-${batch.node}`, request).results[0]?.cells[0]
          expect(actual).toEqual({ ...wanted, level: expect.closeTo(wanted?.level as number, 6) })
        }
      } finally {
        for (const connection of connections) await connection.close()
      }
    }),
    { numRuns: 80 },
  )
})

test('a busy key of twelve nodes takes no more than 600 bytes', async () => {
  const namespace = freshNamespace()
  const store = redisStore(server.url, { ...PATIENT, namespace, publish: false })
  const connections = Array.from({ length: 12 }, (_, i) =>
    store.open({ id: `0123456789abcd${10 + i}`, clock: systemClock, announced: () => {} }),
  )
  const client = new Redis(server.url)
  // The policy for a limit of 1000 per 10 s, under constant overload.
  const busy: StorePolicy = { id: 'bucket', width: 10_000 / 256, cells: 256, limit: 1000, hot: 500, ttl: 20_000, drain: 1000 / 256 }
  const begun = Date.now()
  const counts = connections.map(() => new Map<number, number>())
  for (let at = 0; at < 30_000; at += 500) {
    const running = Math.floor((begun + at) / busy.width)
    for (const [place, connection] of connections.entries()) {
      const own = counts[place] as Map<number, number>
      const open = [...own.keys()].at(-1)
      const ordinal = open !== undefined && running - open < 32 ? open : running
      own.set(ordinal, (own.get(ordinal) ?? 0) + 6)
      const cells = [{ ordinal: ordinal as Ordinal, taken: own.get(ordinal) as number, given: 0 }]
      await connection.sync({ time: begun + at, entries: [{ policy: busy, key: '203.0.113.7', cells }], blocks: [] })
    }
  }
  const [key = ''] = await client.keys(`${namespace}*:w:*`)
  expect(await client.memory('USAGE', key)).toBeLessThanOrEqual(600)
  expect(await client.pttl(key)).toBeGreaterThan(10_000)
  await client.quit()
  for (const connection of connections) await connection.close()
})
