import { awaitOne } from '@weir/testing/store-tests/awaited'
import { createClient } from 'redis'
import { redisRules, redisStore } from '../../src/node-redis/index.ts'

await awaitOne((url, timeout) => {
  const client = createClient({ url })
  return { store: redisStore(client, { timeout }), rules: redisRules(client) }
})
