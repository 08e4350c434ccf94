import { answersAsSimulated, SCENARIOS } from '@weir/testing/store-tests/simulated-buckets'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

test.each(Object.entries(SCENARIOS))('%s: Redis answers each exchange as the store of the simulation', (_name, scenario) =>
  answersAsSimulated(redisStore(server.url, { ...PATIENT, namespace: freshNamespace(), publish: false }), scenario),
)
