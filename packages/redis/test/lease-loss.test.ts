import { systemClock } from '@weir/core'
import type { LeaseAsk, LeaseReply, Ordinal, StorePolicy, SyncEntry } from '@weir/core/sync'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace } from './fixtures.ts'

const INTERVAL = 86_400_000
const LIFETIME = 1_500
const policy: StorePolicy = { id: 'p', width: INTERVAL, cells: 1, limit: 100, hot: Number.POSITIVE_INFINITY, ttl: 2 * INTERVAL }

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

/** Two processes, the Redis key of their leases, and a function for each that requests more units. */
async function started() {
  const namespace = freshNamespace()
  const warnings: unknown[] = []
  const store = redisStore(server.url, { namespace, timeout: 10_000 })
  const nodes = ['a', 'b'].map((id) =>
    store.open({ id, clock: systemClock, announced: () => {}, warned: (error: unknown) => warnings.push(error) } as never),
  )
  const holders = nodes.map((node) => {
    let granted = 0
    let seq = 0
    return async (units: number): Promise<LeaseReply> => {
      const ask: LeaseAsk = {
        ordinal: Math.floor(Date.now() / INTERVAL) as Ordinal,
        incarnation: 1,
        seq: ++seq,
        granted,
        returned: 0,
        taken: 0,
        given: 0,
        cleared: 0,
        epoch: 0,
        least: granted + units,
        waiting: granted + units,
        upTo: granted + units,
        limit: 100,
        nodes: 2,
        early: 1_000,
        lifetime: LIFETIME,
      }
      const entry: SyncEntry = { policy, key: 'k', cells: [], lease: ask }
      const { results } = await node.sync({ entries: [entry], blocks: [] })
      const reply = results[0]?.lease as LeaseReply
      granted = Math.max(granted, reply.granted)
      return reply
    }
  }) as [(units: number) => Promise<LeaseReply>, (units: number) => Promise<LeaseReply>]
  await holders[0](0)
  const key = (await server.keys(`${namespace}:*k:*`)).at(-1) as string
  return { holders, key, close: () => Promise.all(nodes.map((node) => node.close())) }
}

const LOSSES: readonly [string, (key: string) => Promise<unknown>, least: number][] = [
  ['FLUSHALL', () => server.command('flushall'), 40],
  ['the key is evicted', (key) => server.command('del', key), 40],
  [
    'its hash is of another type',
    (key) => server.command('eval', "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], 'x')", '1', key),
    40,
  ],
  ['what is kept of it is no number', (key) => server.command('hset', key, '', 'NaN -1 1e999 {} x'), 40],
  ['a part of it is gone', (key) => server.command('hdel', key, ''), 40],
]

test.each(LOSSES)('%s: what nodes hold is told again, and nothing new is granted for the lifetime of a heartbeat', async (_what, lose) => {
  const { holders, key, close } = await started()
  const [one, two] = holders
  expect((await one(40)).granted).toBe(40)
  expect((await two(20)).granted).toBe(20)
  await lose(key)
  // The first process that syncs reports its leases, and is granted nothing.
  const told = await one(10)
  expect([told.granted, told.free]).toEqual([40, 60])
  expect(told.quiet).toBeGreaterThan(0)
  const other = await two(10)
  expect([other.granted, other.free]).toEqual([20, 40])
  await new Promise((resolve) => setTimeout(resolve, LIFETIME + 50))
  expect(await two(40).then(({ granted, free }) => [granted, free])).toEqual([60, 0])
  expect((await one(1)).granted).toBe(40)
  await close()
})

test('a replica that lagged becomes the primary: the larger count holds, and nothing new is granted for the lifetime of a heartbeat', async () => {
  const { holders, key, close } = await started()
  const [one, two] = holders
  await one(10)
  await two(20)
  // The state that the replica had received.
  await server.command('eval', "redis.call('SET', KEYS[2], redis.call('DUMP', KEYS[1]))", '2', key, 'copy')
  expect((await one(30)).granted).toBe(40)
  expect((await two(5)).granted).toBe(25)
  await server.command('eval', "redis.call('RESTORE', KEYS[1], 60000, redis.call('GET', KEYS[2]), 'REPLACE')", '2', key, 'copy')
  const told = await one(10)
  expect([told.granted, told.free]).toEqual([40, 40])
  expect(told.quiet).toBeGreaterThan(0)
  expect((await two(10)).granted).toBe(25)
  await new Promise((resolve) => setTimeout(resolve, LIFETIME + 50))
  expect((await two(35)).granted).toBe(60)
  expect((await one(1)).granted).toBe(40)
  await close()
})

test('an ask of before a loss that comes late takes nothing back', async () => {
  const { holders, close } = await started()
  const [one, two] = holders
  await Promise.all([one(10), one(10), two(10)])
  const { free } = await two(0)
  expect(free).toBeLessThanOrEqual(80)
  await close()
})
