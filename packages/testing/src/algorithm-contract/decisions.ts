import assert from 'node:assert/strict'
import type { Decision } from '@weir/core'
import { type AlgorithmCase, STEPS } from './case.ts'
import type { KeyUnderTest } from './run.ts'

/** `retryAfterMs` is whole milliseconds, rounded up. Where times are fractions that rounding errors touch, it may be one more. */
const NEARLY = 2

/** Allowed requests, and the fields of their decisions. */
export const decisionCases: readonly AlgorithmCase[] = [
  {
    title: 'it allows what its definition allows, for each key by itself',
    async run(run) {
      const throttler = run.throttler()
      const keys = ['a', 'b', 'c'].map((name) => run.key(throttler, name))
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const decision = run.oneOf(keys).check(run.cost())
        assert.equal(decision.limit, run.limit)
        assert.ok(decision.remaining >= 0 && decision.remaining <= run.most + 1e-9, `remaining is ${decision.remaining}`)
      }
    },
  },
  {
    title: 'a rejected request is allowed after exactly retryAfterMs, if no other comes before it',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = run.cost()
        const decision = key.check(cost)
        if (!decision.allowed && cost <= run.most && run.chance(0.5)) await comesBack(key, decision, cost)
      }
    },
  },
  {
    title: 'retryAfterMs is infinite for what costs more than the limit, and for nothing else',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = run.cost()
        const decision = key.check(cost)
        if (decision.allowed) assert.equal(decision.retryAfterMs, 0)
        else if (cost > run.most) assert.equal(decision.retryAfterMs, Number.POSITIVE_INFINITY)
        else
          assert.ok(
            decision.retryAfterMs > 0 && decision.retryAfterMs < Number.POSITIVE_INFINITY,
            `retryAfterMs is ${decision.retryAfterMs}`,
          )
        if (decision.allowed && run.chance(0.1)) key.charge(decision, run.oneOf([1, run.most, 10 * run.most, 1e300]))
      }
    },
  },
  {
    title: 'what remains fits, and no more',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const { remaining } = key.check(run.cost())
        const more = 1e-6 * run.most
        if (key.exact) assert.ok(Math.abs(remaining - Math.max(0, key.most())) <= key.slack, `${remaining} remain, not ${key.most()}`)
        if (remaining > more) assert.ok(key.throttler.peek(key.key, remaining - more / 2).allowed, `${remaining} remain and do not fit`)
        assert.ok(!key.throttler.peek(key.key, remaining + more).allowed, `${remaining} remain, and more fits`)
      }
    },
  },
  {
    title: 'all units are back after exactly resetAfterMs, allowed or not, if no other request comes',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const { resetAfterMs } = key.check(run.cost())
        assert.ok(resetAfterMs >= 0 && resetAfterMs < Number.POSITIVE_INFINITY, `resetAfterMs is ${resetAfterMs}`)
        if (run.chance(0.6)) continue
        const used = key.most() < run.most
        const before = Math.max(0, resetAfterMs - NEARLY)
        await run.pass(before)
        if (key.exact && used && before > 0) assert.ok(key.most() < run.most, `all is back after ${before} of ${resetAfterMs} ms`)
        await run.pass(resetAfterMs - before)
        assert.ok(key.throttler.peek(key.key, run.most).allowed, `${key.free()} of ${run.most} are free after ${resetAfterMs} ms`)
      }
    },
  },
  {
    title: 'a cooldown holds, and is over after exactly retryAfterMs',
    async run(run) {
      const cooldown = 1 + run.random.below(2 * run.interval)
      const key = run.key(run.throttler({ policies: [run.policy({ cooldown })] }))
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = Math.min(run.most, run.cost())
        const began = key.throttler.check(key.key, cost)
        run.note(`${cost} ${began.reason}`)
        if (began.reason !== 'cooldown') continue
        await run.pass(run.random.below(cooldown))
        const held = key.throttler.check(key.key, cost)
        assert.equal(held.reason, 'cooldown', `${cost} units before the cooldown is over`)
        // The request may cost more than is free at the end of the cooldown. Then `retryAfterMs` is later.
        const early = Math.max(0, held.retryAfterMs - NEARLY)
        await run.pass(early)
        if (early > 0) assert.ok(!key.throttler.peek(key.key, cost).allowed, `${cost} units fit after ${early} of ${held.retryAfterMs} ms`)
        await run.pass(held.retryAfterMs - early)
        assert.ok(key.throttler.check(key.key, cost).allowed, `${cost} units were rejected after the cooldown`)
      }
    },
  },
]

/** Waits for the `retryAfterMs` of a rejected request, and sends it again. */
export async function comesBack(key: KeyUnderTest, { retryAfterMs }: Decision, cost: number): Promise<void> {
  const before = Math.max(0, retryAfterMs - 1)
  await key.run.pass(before)
  if (key.exact) {
    assert.ok(key.most() < cost + key.slack, `retryAfterMs is ${retryAfterMs}, and the definition has room after ${before} ms`)
  }
  await key.run.pass(retryAfterMs - before)
  assert.ok(key.check(cost).allowed, `${cost} units were rejected after a retryAfterMs of ${retryAfterMs}`)
}
