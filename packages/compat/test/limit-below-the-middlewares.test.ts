import { memoryStore } from '@weir/core'
import { expect, onTestFinished, test } from 'vitest'
import { expressRateLimitStore } from '../src/express-rate-limit.ts'

test('express-rate-limit: a limit of the store below the limit of the middleware has no effect', () => {
  const store = expressRateLimitStore(memoryStore(), { limit: 1 })
  onTestFinished(() => store.shutdown())
  store.init({ windowMs: 36_000_000, limit: 3 })
  expect([1, 2, 3, 4].map(() => store.increment('ann').totalHits)).toEqual([1, 2, 3, 4])
})
