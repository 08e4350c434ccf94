import { awaitOne } from '@weir/store-tests/awaited'
import { createClient } from 'redis'
import { redisRules, redisStore } from '../../src/node-redis/index.ts'

await awaitOne((url) => {
  const client = createClient({ url })
  return { store: redisStore(client), rules: redisRules(client) }
})
