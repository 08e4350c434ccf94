import { agreesWithTheHub } from '@weir/testing/store-tests/agrees-with-the-hub'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

test('random requests bring from Redis what they bring from the hub', { timeout: 120_000 }, () =>
  agreesWithTheHub({ open: () => redisStore(server.url, { ...PATIENT, namespace: freshNamespace(), publish: false }), runs: 60 }),
)
