import { redisStore } from '@weir/redis'
import { adapterContract } from '@weir/testing'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { webAdapter, without } from './adapter.ts'

/** The store's timeout in milliseconds, so that a busy machine does not count as an outage. */
const PATIENT = 30_000

let server: RedisServer
let cases = 0
beforeAll(async () => {
  server = await RedisServer.start()
}, 30_000)
afterAll(() => server?.stop())

adapterContract('@weir/web on @hono/node-server with Redis', webAdapter('node'), {
  describe,
  // Concurrent, because several tests wait for real intervals to end.
  test: test.concurrent,
  store: () => redisStore(server.url, { namespace: `case-${++cases}`, timeout: PATIENT }),
  without,
})
