import { storeContract } from '@weir/testing'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { type SentinelSetup, startSentinels } from '@weir/tooling/redis-topologies'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/node-redis/index.ts'
import { followsFailovers } from './failover.ts'
import { flushed, hanging } from './faults.ts'
import { BRIEF, redisFixture } from './fixtures.ts'

let setup: SentinelSetup
beforeAll(async () => {
  setup = await startSentinels()
}, 60_000)
afterAll(() => setup.stop())

const options = () => ({ name: setup.name, sentinelRootNodes: setup.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })) })

storeContract(
  'redisStore of node-redis behind Sentinels',
  () =>
    redisFixture((namespace) => redisStore(options(), { ...BRIEF, namespace }), setup.servers.slice(0, 1), {
      lose: flushed(async () => [await setup.primary()]),
      goAway: hanging(() => [...setup.servers, ...setup.sentinels]),
    }),
  { describe, test },
)

test('an unknown name is reported', async () => {
  const node = new TestNode(redisStore({ ...options(), name: 'other' }))
  await expect(node.count('k', 1)).rejects.toMatchObject({ message: expect.stringContaining('have no primary named "other"') })
  await node.close()
})

followsFailovers(
  () => setup,
  (namespace) => redisStore(options(), { ...BRIEF, namespace }),
  (node) => node.beat().catch(() => undefined),
)
