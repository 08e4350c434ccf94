import assert from 'node:assert/strict'
import type { Decision } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { type AlgorithmCase, STEPS } from './case.ts'

/** Units that are counted afterwards, and units that must not be counted. */
export const correctionCases: readonly AlgorithmCase[] = [
  {
    title: 'units that are given back are free at once',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const before = key.free()
        const cost = run.cost()
        const decision = key.check(cost)
        if (!decision.allowed) continue
        if (run.chance(0.5)) {
          const part = cost * run.random.next()
          key.refund(decision, part, cost, run.clock.now())
          const free = key.free()
          assert.ok(Math.abs(free - (decision.remaining + part)) <= key.slack, `${part} of ${cost} came back, ${free} are free`)
          key.refund(decision, Number.POSITIVE_INFINITY, cost - part, run.clock.now())
          assert.ok(Math.abs(key.free() - before) <= key.slack, `${before} were free, then ${key.free()}`)
        }
      }
    },
  },
  {
    title: 'units that are given back later leave the time that they were taken in, once',
    async run(run) {
      const key = run.key(run.throttler())
      const decisions: { readonly decision: Decision; readonly at: number; left: number }[] = []
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = run.cost()
        const decision = key.check(cost)
        if (decision.allowed) decisions.push({ decision, at: run.clock.now(), left: cost })
        if (decisions.length === 0 || run.chance(0.5)) continue
        const one = run.oneOf(decisions.slice(-5))
        const units = run.chance(0.5) ? Number.POSITIVE_INFINITY : 2 * run.random.next() * one.left
        await run.gap()
        key.refund(one.decision, units, one.left, one.at)
        one.left = Math.max(0, one.left - units)
        assert.ok(key.free() <= run.most + key.slack, `${key.free()} of ${run.most} are free`)
      }
    },
  },
  {
    title: 'a charge counts, whether or not it fits',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const decision = key.check(run.cost())
        if (!decision.allowed || run.chance(0.5)) continue
        if (run.chance(0.3)) await run.gap()
        const before = key.free()
        const units = run.limit * run.random.next() * run.oneOf([0.2, 1, 3])
        key.charge(decision, units)
        const free = key.free()
        assert.ok(Math.abs(free - Math.max(0, before - units)) <= key.slack, `${before} were free, ${units} charged, ${free} are left`)
      }
    },
  },
  {
    title: 'a look changes nothing',
    async run(run) {
      const [looked, other] = [run.throttler(), run.throttler()]
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        for (let looks = run.random.below(3); looks > 0; looks--) looked.peek('key', run.cost())
        if (run.chance(0.2)) snapshot(looked)
        const cost = run.cost()
        run.note(`${cost}`)
        assert.deepEqual(told(looked.check('key', cost)), told(other.check('key', cost)))
      }
    },
  },
  {
    title: 'a request that another policy rejects leaves no trace',
    async run(run) {
      // The policy under test is first, where it has already counted when another policy rejects, and last.
      const gate = { name: 'gate', limit: Math.max(1, run.limit / 2), interval: run.interval, coordination: 'local' as const }
      const policies = [run.policy({ name: 'first' }), gate, run.policy({ name: 'last', limit: Math.max(1, 0.7 * run.limit) })]
      const several = run.throttler({ policies })
      const alone = [policies[0], policies[2]].map((policy) => run.throttler({ policies: policy === undefined ? [] : [policy] }))
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = run.cost()
        const decision = several.check('key', cost)
        run.note(`${cost} ${decision.allowed ? '✓' : '✗'}`)
        for (const [place, throttler] of alone.entries()) {
          const part = decision.parts[2 * place] as Decision
          // A policy that rejects may store the rejection, so it is checked and not peeked.
          const own = part.reason !== 'ok' || decision.allowed ? throttler.check('key', cost) : throttler.peek('key', cost)
          assert.equal(part.reason, own.reason, `${part.policy?.name} says ${part.reason}, alone ${own.reason}`)
          const near = Math.abs(part.remaining - own.remaining) <= 1e-9 * run.limit
          assert.ok(near, `${part.policy?.name}: ${part.remaining}, alone ${own.remaining}`)
          assert.equal(part.resetAfterMs, own.resetAfterMs, `resetAfterMs of ${part.policy?.name}`)
        }
      }
    },
  },
  {
    title: 'a reset makes a key as one that was never used',
    async run(run) {
      const [used, fresh] = [run.throttler(), run.throttler()]
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        used.check('key', run.cost())
      }
      used.reset('key')
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = run.cost()
        const decision = told(used.check('key', cost))
        run.note(`${cost} ${decision.allowed ? '✓' : '✗'}`)
        assert.deepEqual(decision, told(fresh.check('key', cost)))
      }
    },
  },
]

/** The fields of a decision that a caller sees. */
function told({
  allowed,
  reason,
  remaining,
  resetAfterMs,
  retryAfterMs,
  delayMs: delay,
  cost,
}: Decision): Omit<Decision, 'policy' | 'key' | 'limit' | 'dryRun' | 'parts' | 'toJSON'> {
  return { allowed, reason, remaining, resetAfterMs, retryAfterMs, delayMs: delay, cost }
}
