import { grantsAsTheModel } from '@weir/testing/store-tests/leases'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

test.each(['interval', 'none'] as const)('the script does what the model does, step by step, of %s', { timeout: 60_000 }, (of) =>
  grantsAsTheModel(redisStore(server.url, { ...PATIENT, namespace: freshNamespace() }), of, { runs: 60 }),
)
