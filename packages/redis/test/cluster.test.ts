import { storeContract } from '@weir/testing'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { type ClusterSetup, startCluster } from '@weir/tooling/redis-topologies'
import { Cluster } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { flushed, hanging } from './faults.ts'
import { BRIEF, documentedUser, PATIENT, redisFixture } from './fixtures.ts'

let cluster: ClusterSetup
beforeAll(async () => {
  cluster = await startCluster()
}, 60_000)
afterAll(() => cluster.stop())

const startupNodes = (): { host: string; port: number }[] => cluster.servers.map(({ port }) => ({ host: '127.0.0.1', port }))

const primaries = () => cluster.servers.slice(0, 3)

storeContract(
  'redisStore over a Cluster',
  () =>
    redisFixture((namespace) => redisStore({ cluster: startupNodes() }, { ...BRIEF, namespace }), primaries(), {
      lose: flushed(primaries),
      goAway: hanging(() => cluster.servers),
    }),
  { describe, test },
)

storeContract(
  'redisStore by a Cluster of ioredis 5, of which one primary loses its data',
  () => {
    const client = new Cluster5(startupNodes(), { lazyConnect: true })
    return redisFixture((namespace) => redisStore(client, { ...PATIENT, namespace }), primaries(), {
      lose: flushed(primaries),
      close: () => client.disconnect(),
    })
  },
  { describe, test, without: { goAway: 'shown for another instance' } },
)

test('an instance of a Cluster is a template: it stays unconnected', async ({ expect }) => {
  const client = new Cluster(startupNodes(), { lazyConnect: true })
  const connection = redisStore(client).open({ id: 'template', clock: (await import('@weir/core')).systemClock, announced: () => {} })
  await connection.sync({ entries: [], blocks: [] })
  await connection.close()
  expect(client.status).toBe('wait')
})

test('the permissions in the README suffice in a Cluster', async ({ expect }) => {
  for (const server of cluster.servers) await server.command('acl', 'setuser', ...documentedUser('acl', true))
  const options = { redisOptions: { username: 'weir', password: 'secret' } }
  const node = new TestNode(redisStore({ cluster: startupNodes(), options }, { ...PATIENT, namespace: 'acl' }))
  for (const key of ['a', 'b', 'c', 'd', 'e']) expect(await node.eventually(() => node.count(key, 1))).toBe(1)
  expect((await node.beat()).nodes).toBe(1)
  await node.close()
})
