import { storeContract } from '@weir/testing'
import { until } from '@weir/tooling/redis-servers'
import { type SentinelSetup, startSentinels } from '@weir/tooling/redis-topologies'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { redisFixture } from './fixtures.ts'
import { TestNode } from './test-node.ts'

let setup: SentinelSetup
let client: Redis
beforeAll(async () => {
  setup = await startSentinels()
  client = new Redis({ sentinels: setup.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })), name: setup.name, lazyConnect: true })
}, 60_000)
afterAll(async () => {
  client.disconnect()
  await setup.stop()
})

storeContract(
  'redisStore behind Sentinels',
  () =>
    redisFixture((namespace) => redisStore(client, { namespace }), setup.servers.slice(0, 1), {
      lose: async () => void (await (await setup.primary()).cli('flushall')),
      goAway: async () => {
        for (const server of [...setup.servers, ...setup.sentinels]) server.pause()
        return () => {
          for (const server of [...setup.servers, ...setup.sentinels]) server.resume()
        }
      },
    }),
  { describe, test },
)

test('after a failover the new primary is used, and counts that it lacks are noticed', { timeout: 60_000 }, async () => {
  const node = new TestNode(redisStore(client, { namespace: 'failover' }))
  await node.eventually(() => node.count('k', 1))
  const before = await node.beat()
  const old = await setup.primary()
  // A replica that lags: it gets nothing of what is written from here on.
  for (const server of setup.servers) if (server !== old) await server.cli('replicaof', '127.0.0.1', '1')
  expect(await node.count('k', 5)).toBe(5)
  await old.kill()
  await until(async () => (await setup.primary()) !== old, 'Sentinels have chosen another primary', 30_000)
  const after = await node.eventually(() => node.beat())
  expect(after.generation).not.toBe(before.generation)
  expect(await node.eventually(() => node.count('k', 5))).toBe(5)
  await node.close()
})
