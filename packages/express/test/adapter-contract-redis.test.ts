import { redisStore } from '@weir/redis'
import { adapterContract } from '@weir/testing'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { expressAdapter } from './adapter.ts'
import { FRAMEWORKS } from './frameworks.ts'

/** Milliseconds. A busy machine is no outage. */
const PATIENT = 30_000

let server: RedisServer
let cases = 0
beforeAll(async () => {
  server = await RedisServer.start()
}, 30_000)
afterAll(() => server?.stop())

for (const [name, framework] of FRAMEWORKS) {
  adapterContract(`${name} with Redis`, expressAdapter(framework), {
    describe,
    // Several wait for real intervals to end.
    test: test.concurrent,
    store: () => redisStore(server.url, { namespace: `case-${++cases}`, timeout: PATIENT }),
  })
}
