import { systemClock } from '@weir/core'
import { storeContract } from '@weir/testing'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { until } from '@weir/tooling/redis-servers'
import { type ClusterSetup, startCluster } from '@weir/tooling/redis-topologies'
import { createCluster } from 'redis'
import { createCluster as createCluster5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/node-redis/index.ts'
import { targetOf } from '../src/node-redis/target.ts'
import { flushed, hanging } from './faults.ts'
import { BRIEF, documentedUser, PATIENT, redisFixture } from './fixtures.ts'

let cluster: ClusterSetup
beforeAll(async () => {
  cluster = await startCluster()
}, 60_000)
afterAll(() => cluster.stop())

const rootNodes = () => cluster.servers.map(({ url }) => ({ url }))
const primaries = () => cluster.servers.slice(0, 3)

let client: ReturnType<typeof createCluster>
let client5: ReturnType<typeof createCluster5>
beforeAll(() => {
  client = createCluster({ rootNodes: rootNodes() })
  client5 = createCluster5({ rootNodes: rootNodes().slice(0, 1) })
})

storeContract(
  'redisStore by a Cluster of redis 6',
  () =>
    redisFixture((namespace) => redisStore(client, { ...BRIEF, namespace }), primaries(), {
      lose: flushed(primaries),
      goAway: hanging(() => cluster.servers),
    }),
  { describe, test },
)

storeContract(
  'redisStore by a Cluster of redis 5, of which one primary loses its data',
  () =>
    redisFixture((namespace) => redisStore(client5, { ...PATIENT, namespace }), primaries(), {
      lose: flushed(primaries),
    }),
  { describe, test, without: { goAway: 'shown for another instance' } },
)

test('the permissions in the README suffice in a Cluster, which may be given by its options', async () => {
  for (const server of cluster.servers) await server.command('acl', 'setuser', ...documentedUser('acl', true))
  const options = { rootNodes: rootNodes(), defaults: { username: 'weir', password: 'secret' } }
  const node = new TestNode(redisStore(options, { ...PATIENT, namespace: 'acl' }))
  for (const key of ['a', 'b', 'c', 'd', 'e']) expect(await node.eventually(() => node.count(key, 1))).toBe(1)
  expect((await node.beat()).nodes).toBe(1)
  await node.close()
})

test('slots that move are followed, and asked for where they are meanwhile', { timeout: 60_000 }, async () => {
  const node = new TestNode(redisStore(client, { ...PATIENT, namespace: 'moving', shards: 1 }))
  expect(await node.eventually(() => node.count('k', 1))).toBe(1)
  const names = await Promise.all(primaries().map((server) => server.keys('moving:*')))
  const from = primaries()[names.findIndex((keys) => keys.length > 0)]
  const to = primaries().find((server) => server !== from)
  const key = names.flat()[0]
  if (from === undefined || to === undefined || key === undefined) throw new Error('no keys')
  const slot = await from.command('cluster', 'keyslot', key)
  const [source, target] = await Promise.all([from, to].map((server) => server.command('cluster', 'myid')))
  await to.command('cluster', 'setslot', slot, 'importing', source as string)
  await from.command('cluster', 'setslot', slot, 'migrating', target as string)
  const keys = (await from.command('cluster', 'getkeysinslot', slot, '100')).trim().split('\n')
  await from.command('migrate', '127.0.0.1', String(to.port), '', '0', '5000', 'keys', ...keys)
  // While a slot moves, a script whose keys are in two places can't run. A command with one key can.
  const link = targetOf(client).open({ clock: systemClock, timeout: 5000, channel: undefined, received: () => {} })
  expect(await link.connected()).toBe(true)
  expect(await link.remove(`${key.slice(0, key.indexOf('}') + 1)}:none`, 'member')).toBe(0)
  link.close()
  for (const server of primaries()) await server.command('cluster', 'setslot', slot, 'node', target as string)
  expect(await node.eventually(() => node.count('k', 3).catch(() => undefined))).toBe(3)
  await until(async () => (await to.keys('moving:*')).length > 0, 'keys are at their new place')
  expect(await from.keys('moving:*')).toEqual([])
  await node.close()
})
