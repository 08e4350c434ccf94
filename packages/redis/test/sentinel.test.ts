import { storeContract } from '@weir/testing'
import { type SentinelSetup, startSentinels } from '@weir/tooling/redis-topologies'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { followsFailovers } from './failover.ts'
import { flushed, hanging } from './faults.ts'
import { BRIEF, redisFixture } from './fixtures.ts'

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
    redisFixture((namespace) => redisStore(client, { ...BRIEF, namespace }), setup.servers.slice(0, 1), {
      lose: flushed(async () => [await setup.primary()]),
      goAway: hanging(() => [...setup.servers, ...setup.sentinels]),
    }),
  { describe, test },
)

followsFailovers(
  () => setup,
  (namespace) => redisStore(client, { ...BRIEF, namespace }),
)
