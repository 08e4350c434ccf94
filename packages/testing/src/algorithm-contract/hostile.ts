import assert from 'node:assert/strict'
import type { Decision } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { type AlgorithmCase, STEPS } from './case.ts'
import { comesBack } from './decisions.ts'
import type { AlgorithmRun } from './run.ts'

const COSTS = [Number.MIN_VALUE, 1e-300, 1e-9, 0.1, 1, 1, 1, 2.5, 1e15, Number.MAX_SAFE_INTEGER, 1e300, Number.MAX_VALUE]
/** Invalid costs. Each counts as 1, with a warning. */
const NONSENSE = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '1', null, {}] as unknown as readonly number[]
const LIMITS = [undefined, undefined, undefined, 0, 1, 1.5, 100, 1e15, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]
const NO_LIMITS = [0.5, -1, Number.NaN, '5'] as unknown as readonly number[]
/** Milliseconds by which a clock is stepped: a second, an hour, a year, a generation. */
const STEPS_OF_CLOCKS = [1000, 3_600_000, 3.2e10, 1e12]

/** Misuse that must do no harm. */
export const hostileCases: readonly AlgorithmCase[] = [
  {
    title: 'whatever it is given, what it tells is possible, and a reset key is as new',
    async run(run) {
      const throttler = run.throttler()
      throttler.on('warning', () => {})
      let last: Decision | undefined
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        if (run.chance(0.1)) run.clock.step((run.chance(0.5) ? -1 : 1) * run.oneOf(STEPS_OF_CLOCKS))
        if (run.chance(0.05)) await run.sleep(run.interval * run.oneOf([1, 100, 1e6]))
        const cost = run.chance(0.1) ? run.oneOf(NONSENSE) : run.chance(0.5) ? run.cost() : run.oneOf(COSTS)
        const limit = run.chance(0.05) ? run.oneOf(NO_LIMITS) : run.oneOf(LIMITS)
        const decision = throttler.check('key', { cost, limit })
        run.note(`${String(cost)} of ${String(limit)} ${decision.allowed ? '✓' : '✗'}`)
        isPossible(decision, run)
        if (limit === 0) assert.ok(!decision.allowed, 'a limit of 0 lets something in')
        if (decision.allowed) last = decision
        if (last !== undefined && run.chance(0.3)) {
          const units = run.oneOf([...COSTS, ...NONSENSE, last.cost / 3])
          if (run.chance(0.5)) throttler.charge(last, units)
          else throttler.refund(last, units)
          run.note(`charged or refunded ${String(units)}`)
        }
        isPossible(throttler.peek('key'), run)
        for (const { used, limit: most } of run.chance(0.1) ? snapshot(throttler).top : []) {
          assert.ok(used >= 0 && most >= 0, `a snapshot says ${used} of ${most}`)
        }
      }
      throttler.reset('key')
      assert.equal(throttler.peek('key').remaining, run.most)
      assert.ok(throttler.check('key', run.most).allowed, 'a reset key is not as new')
    },
  },
  {
    title: 'a limit that is given with a request is compared with what was used',
    async run(run) {
      const key = run.key(run.throttler())
      key.tellsLimit = true
      const own = run.limit
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        run.limit = run.oneOf([own, own, 1, 2, own * 2, Math.max(1, own / 2)])
        const cost = run.cost()
        const decision = key.check(cost)
        assert.equal(decision.limit, run.limit)
        if (!decision.allowed && cost <= run.most && run.chance(0.3)) await comesBack(key, decision, cost)
      }
    },
  },
  {
    title: 'after a long sleep of the process a key has all that a new one has, and no more',
    async run(run) {
      const key = run.key(run.throttler())
      for (let turn = 0; turn < 3; turn++) {
        for (let step = 0; step < STEPS / 4; step++) {
          await run.gap()
          key.check(run.cost())
        }
        await run.sleep((run.interval * Math.max(1, run.most / run.limit) + 20_000) * run.oneOf([20, 1000, 1e6]))
        assert.ok(Math.abs(key.free() - run.most) <= key.slack, `${key.free()} of ${run.most} are free`)
        const decision = key.check(run.most)
        assert.ok(decision.allowed, 'what a new key may take is rejected')
        // `check` compares the remaining units with the model.
        for (let more = 0; more < 3; more++) key.check(Math.max(1, run.most / 2))
      }
    },
  },
]

function isPossible(
  { allowed, reason, limit, remaining, resetAfterMs, retryAfterMs, delayMs: delay, cost, policy }: Decision,
  run: AlgorithmRun,
): void {
  const most = policy?.algorithm.most?.(limit) ?? limit
  const told = `remaining ${remaining} of ${most}, resetAfterMs ${resetAfterMs}, retryAfterMs ${retryAfterMs}, delay ${delay}`
  assert.ok(remaining >= 0 && remaining <= most, told)
  assert.ok(resetAfterMs >= 0 && resetAfterMs < Number.POSITIVE_INFINITY, told)
  assert.ok(delay >= 0 && delay < Number.POSITIVE_INFINITY, told)
  assert.ok(cost >= 0 && cost < Number.POSITIVE_INFINITY, told)
  if (allowed) assert.equal(retryAfterMs, 0)
  else assert.ok(retryAfterMs >= 1 && (retryAfterMs < Number.POSITIVE_INFINITY || reason !== 'blocked'), told)
  assert.equal(limit === run.limit || LIMITS.includes(limit), true, `the limit is ${limit}`)
}
