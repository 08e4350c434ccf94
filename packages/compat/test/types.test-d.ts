import type { Store as ErlStore } from 'express-rate-limit'
import type { Store as HonoStore } from 'hono-rate-limiter'
import { expectTypeOf, test } from 'vitest'
import type { ExpressRateLimitStore } from '../src/express-rate-limit.ts'

test('an ExpressRateLimitStore is a store of express-rate-limit and of hono-rate-limiter', () => {
  expectTypeOf<ExpressRateLimitStore>().toMatchTypeOf<ErlStore>()
  expectTypeOf<ExpressRateLimitStore>().toMatchTypeOf<HonoStore>()
})
