import { TestNode } from '@weir/testing/store-tests/test-node'
import { type ClusterSetup, startCluster } from '@weir/tooling/redis-topologies'
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { redisStore as nodeRedisStore } from '../src/node-redis/index.ts'

let cluster: ClusterSetup
beforeAll(async () => {
  cluster = await startCluster()
  // A primary that hangs keeps its slots.
  for (const server of cluster.servers) await server.command('config', 'set', 'cluster-node-timeout', '600000')
}, 60_000)
afterAll(() => cluster.stop())

const KEYS = Array.from({ length: 20 }, (_, i) => `key ${i}`)

describe.each([
  [
    'ioredis',
    (namespace: string) => redisStore({ cluster: cluster.servers.map(({ port }) => ({ host: '127.0.0.1', port })) }, { namespace }),
  ],
  [
    'redis 6',
    (namespace: string) => nodeRedisStore(createCluster({ rootNodes: cluster.servers.map(({ url }) => ({ url })) }), { namespace }),
  ],
] as const)('a Cluster by %s', (name, storeIn) => {
  const node = (namespace: string) => {
    const made = new TestNode(storeIn(`${namespace}-${name.replace(' ', '')}`))
    onTestFinished(() => made.close())
    return made
  }
  const counted = async (at: TestNode) => {
    const totals = await Promise.all(KEYS.map((key) => at.count(key, 1).catch(() => undefined)))
    return totals.filter((total) => total === 1).length
  }

  test('of which one primary hangs from the start is used where it answers, and whole once that one does', {
    timeout: 60_000,
  }, async () => {
    const [hung] = cluster.servers
    hung?.pause()
    onTestFinished(() => hung?.resume())
    const one = node('hung')
    await expect.poll(() => counted(one), { timeout: 20_000, interval: 100 }).toBeGreaterThan(0)
    hung?.resume()
    await expect.poll(() => counted(one), { timeout: 20_000, interval: 100 }).toBe(KEYS.length)
  })

  test('that nobody could reach at the start is used once it is there', { timeout: 60_000 }, async () => {
    for (const server of cluster.servers) server.pause()
    const resume = () => {
      for (const server of cluster.servers) server.resume()
    }
    onTestFinished(resume)
    const one = node('away')
    expect(await counted(one)).toBe(0)
    expect(await counted(one)).toBe(0)
    resume()
    await expect.poll(() => counted(one), { timeout: 20_000, interval: 100 }).toBe(KEYS.length)
  })
})
