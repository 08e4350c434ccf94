import assert from 'node:assert/strict'
import { snapshot } from '@weir/core/inspect'
import { type AlgorithmCase, STEPS } from './case.ts'
import { comesBack } from './decisions.ts'

/** The part of its speed by which a clock may run slower or faster while it is corrected. */
const SLEW = 0.1

/** Events around the requests. */
export const circumstanceCases: readonly AlgorithmCase[] = [
  {
    title: 'a key is forgotten when that changes no decision, and not before',
    async run(run) {
      // A full table rejects new keys, so a key that was forgotten too early is noticed.
      const throttler = run.throttler({ maxKeys: 6, overflow: 'reject' })
      const key = run.key(throttler)
      let crowds = 0
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        if (run.chance(0.2)) snapshot(throttler)
        if (run.chance(0.4)) {
          run.note('a crowd')
          for (let guest = 0; guest < 4; guest++) throttler.check(`guest ${++crowds}`, Math.min(run.most, run.cost()))
        }
        const cost = run.cost()
        const unused = key.most() >= run.most - key.slack
        if (throttler.peek(key.key, cost).reason === 'overflow') {
          assert.ok(unused, `a key in use was forgotten: its definition has room for ${key.most()} of ${run.most}`)
        } else key.check(cost)
      }
      await run.pass(Math.ceil(20 * run.interval * Math.max(1, run.most / run.limit)))
      assert.equal(snapshot(throttler).policies[0]?.keys, 0, 'keys that nobody uses are kept')
    },
  },
  {
    title: 'another limit keeps what was counted',
    async run(run) {
      const key = run.key(run.throttler())
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        if (run.chance(0.15)) {
          run.limit = run.oneOf([1, 2, 5, run.limit * 2, Math.max(1, run.limit / 2)])
          run.note(`limit ${run.limit}`)
          key.throttler.update([run.policy()])
        }
        const cost = run.cost()
        const decision = key.check(cost)
        if (!decision.allowed && cost <= run.most && run.chance(0.3)) await comesBack(key, decision, cost)
      }
    },
  },
  {
    title: 'a step of the wall clock frees no units at once, and locks nobody out',
    async run(run) {
      const throttler = run.throttler()
      const { clock, interval, limit } = run
      const began = clock.monotonic()
      const most = run.key(throttler).most()
      let allowed = 0
      const check = (cost: number) => {
        const decision = throttler.check('key', cost)
        if (decision.allowed) allowed += cost
        run.note(`${cost} ${decision.allowed ? '✓' : '✗'}`)
        return decision
      }
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const cost = run.cost()
        if (run.chance(0.3)) {
          const before = throttler.peek('key', cost)
          const by = (run.chance(0.7) ? -1 : 1) * run.random.below(run.oneOf([1000, interval, 100 * interval]))
          run.note(`clock ${by}`)
          clock.step(by)
          const after = throttler.peek('key', cost)
          assert.deepEqual([after.allowed, after.remaining], [before.allowed, before.remaining])
        }
        const { allowed, retryAfterMs } = check(cost)
        if (allowed || cost > run.most) continue
        await run.pass(Math.ceil((retryAfterMs * (1 + SLEW)) / (1 - SLEW)) + 2)
        assert.ok(check(cost).allowed, `${cost} units were rejected long after a retryAfterMs of ${retryAfterMs}`)
      }
      const intervals = ((clock.monotonic() - began) * (1 + SLEW)) / interval
      const bound = most + (intervals + 1) * limit
      assert.ok(allowed <= bound, `${allowed} units were allowed, ${bound} might have been at most`)
    },
  },
]
