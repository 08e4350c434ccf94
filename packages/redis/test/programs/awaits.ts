import { awaitOne } from '@weir/testing/store-tests/awaited'
import { redisRules, redisStore } from '../../src/index.ts'

await awaitOne((address, timeout) => ({ store: redisStore(address, { timeout }), rules: redisRules(address) }))
