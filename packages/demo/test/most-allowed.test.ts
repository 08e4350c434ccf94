import { expect, test } from 'vitest'
import { mostAllowed } from '../src/report/live-summary.ts'

test('a tenth more than the limit, or what arrives in the time of two hops of news', () => {
  expect(mostAllowed(60, 300, 0, 2_000)).toBe(66)
  expect(mostAllowed(60, 300, 20, 2_000)).toBe(66)
  // A gateway that was blocked for 47 ms: at 150 requests a second, counted twice for both directions.
  expect(mostAllowed(60, 300, 47, 2_000)).toBe(75)
})
