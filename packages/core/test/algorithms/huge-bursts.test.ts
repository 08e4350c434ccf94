import fc from 'fast-check'
import { expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { ManualTime } from '../http/manual-time.ts'

const step = fc.record({
  /** A fraction of the bucket's capacity. */
  part: fc.constantFrom(0, 1e-12, 1e-6, 0.1, 0.5, 1),
  /** A number of intervals. */
  wait: fc.constantFrom(0, 0, 1e-6, 0.001, 0.5, 20),
  charge: fc.constantFrom(0, 0, 0, 0.5, 3),
})

test('buckets of any size allow no more than they hold and gain, and tell when what they reject fits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 3, 1e6, 1e12, 2 ** 52),
      fc.constantFrom(1, 7, 1e6, 1e12, 2 ** 52),
      fc.constantFrom(30, 1000, 86_400_000, 365 * 86_400_000),
      fc.boolean(),
      fc.array(step, { minLength: 5, maxLength: 40 }),
      async (burst, limit, interval, leaks, steps) => {
        const clock = new ManualTime(60_000_000)
        const algorithm = leaks ? leakyBucket({ burst: burst - 1, immediate: 0 }) : tokenBucket({ burst })
        const throttler = createThrottler({ policies: [{ limit, interval, algorithm, coordination: 'local' }], clock })
        let allowed = 0
        let passed = 0
        const wait = (milliseconds: number) => {
          passed += milliseconds
          clock.advance(milliseconds)
        }
        for (const { part, wait: rest, charge } of steps) {
          wait(rest * interval)
          const cost = Math.max(1, part * burst)
          const first = throttler.check('key', cost)
          let decision = first
          if (!first.allowed && first.retryAfterMs < 50 * interval) {
            wait(first.retryAfterMs)
            decision = throttler.check('key', cost)
            expect([decision.allowed, cost, first.retryAfterMs]).toEqual([true, cost, first.retryAfterMs])
          }
          if (decision.allowed) allowed += cost
          expect(decision.remaining).toBeGreaterThanOrEqual(0)
          expect(decision.remaining).toBeLessThanOrEqual(burst)
          expect(decision.delayMs).toBeGreaterThanOrEqual(0)
          expect(decision.resetAfterMs).toBeLessThan(Number.POSITIVE_INFINITY)
          if (decision.allowed && charge > 0) {
            throttler.charge(decision, charge * burst)
          }
          const bound = burst + (limit * passed) / interval
          expect(allowed).toBeLessThanOrEqual(bound * (1 + 1e-9))
        }
        await throttler.close()
      },
    ),
    { numRuns: 300 },
  )
})
