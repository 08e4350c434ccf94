import { awaitOne } from '@weir/store-tests/awaited'
import { redisRules, redisStore } from '../../src/index.ts'

await awaitOne((address) => ({ store: redisStore(address), rules: redisRules(address) }))
