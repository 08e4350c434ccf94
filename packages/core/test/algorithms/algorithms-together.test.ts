import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { ManualTime } from '../http/manual-time.ts'

const ALGORITHMS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  tokenBucket({ burst: 3 }),
  tokenBucket({ warmUp: 500 }),
  leakyBucket({ burst: 4, immediate: 1 }),
]
const INTERVAL = 1000

type Step =
  | { readonly kind: 'check'; readonly cost: number; readonly limit: number | undefined }
  | { readonly kind: 'refund' | 'charge'; readonly part: number }
  | { readonly kind: 'block'; readonly place: number }
  | { readonly kind: 'limit'; readonly to: number }
  | { readonly kind: 'pass'; readonly milliseconds: number }

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('check' as const),
      cost: fc.constantFrom(1, 1, 1, 2, 0.5, 5),
      limit: fc.constantFrom(undefined, undefined, undefined, undefined, 0, 2, 20, Number.POSITIVE_INFINITY),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('refund' as const, 'charge' as const),
      part: fc.double({ min: 0.01, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('block' as const), place: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('limit' as const), to: fc.constantFrom(3, 5, 8) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(1, 30, 200, 999, 1000, 3000) }) },
)

describe('levels of different algorithms on one request', () => {
  test('each decides and counts as it would alone, and what one rejects leaves no trace at the others', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(ALGORITHMS.length - 1), { minLength: 2, maxLength: 4 }),
        fc.array(steps, { minLength: 10, maxLength: 60 }),
        fc.nat(5000),
        async (chosen, course, began) => {
          const clock = new ManualTime(60_000_000 + began)
          const rules = (limit: number): PolicyOptions[] =>
            chosen.map((at, place) => ({
              name: `p${place}`,
              limit: limit + place,
              interval: INTERVAL,
              algorithm: ALGORITHMS[at] as Algorithm,
              coordination: 'local',
            }))
          const together = createThrottler({ policies: rules(5), clock })
          const alone = rules(5).map((policy) => createThrottler({ policies: [policy], clock }))
          // A bucket that is empty even at the lowest limit may be forgotten, and other policies change when that happens. So all get the
          // lowest limit at the start.
          for (const one of [together, ...alone]) one.check('key', { cost: 1e9, limit: 2 })
          let last: { readonly whole: Decision; readonly parts: readonly Decision[] } | undefined
          for (const step of course) {
            if (step.kind === 'pass') clock.advance(step.milliseconds)
            else if (step.kind === 'block') {
              const name = `p${step.place % chosen.length}`
              together.block('key', 300, { policy: name })
              alone[step.place % chosen.length]?.block('key', 300)
            } else if (step.kind === 'limit') {
              together.update(rules(step.to))
              for (const [place, one] of alone.entries()) one.update([rules(step.to)[place] as PolicyOptions])
            } else if (step.kind === 'check') {
              const { cost, limit } = step
              const asked = limit === undefined ? { cost } : { cost, limit }
              // A preview sets no limit for a key, but a request that never fits does.
              const never = { ...asked, cost: 1e9 }
              if (limit !== Number.POSITIVE_INFINITY) for (const one of [together, ...alone]) one.check('key', never)
              const looks = alone.map((one) => one.peek('key', asked))
              const whole = together.check('key', asked)
              expect(whole.allowed).toBe(looks.every(({ allowed }) => allowed))
              // After a manual block, the throttlers that only previewed have not received this limit.
              if (!whole.allowed && limit === Number.POSITIVE_INFINITY) return
              if (whole.allowed) last = { whole, parts: alone.map((one) => one.check('key', asked)) }
              for (const [place, part] of whole.parts.entries()) {
                const own = whole.allowed ? last?.parts[place] : looks[place]
                const left = own?.remaining ?? 0
                expect(part.reason).toBe(own?.reason)
                if (left !== Number.POSITIVE_INFINITY) expect(Math.abs(part.remaining - left)).toBeLessThan(1e-6)
                expect(part.delayMs).toBeCloseTo(whole.allowed ? (own?.delayMs ?? 0) : part.delayMs, 6)
              }
              const delays = whole.parts.map(({ delayMs: delay }) => delay)
              expect(whole.delayMs).toBe(whole.allowed ? Math.max(...delays) : 0)
            } else if (last !== undefined) {
              const units = step.part * last.whole.parts[0]!.cost
              if (!(units > 0)) continue
              together[step.kind](last.whole, units)
              for (const [place, one] of alone.entries()) one[step.kind](last.parts[place] as Decision, units)
            }
          }
          for (const [place, { remaining }] of together.peek('key', 0).parts.entries()) {
            const own = alone[place]?.peek('key', 0).remaining ?? 0
            expect(Math.abs(remaining - own)).toBeLessThan(1e-6)
          }
          expect(snapshot(together).policies).toHaveLength(chosen.length)
          await Promise.all([together, ...alone].map((one) => one.close()))
        },
      ),
      { numRuns: 100 },
    )
  })
})
