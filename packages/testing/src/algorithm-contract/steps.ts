import assert from 'node:assert/strict'
import type { Algorithm, Decision, Step, Throttler, Verdict } from '@weir/core'
import { type AlgorithmCase, STEPS } from './case.ts'
import type { AlgorithmRun } from './run.ts'

/** Decisions round times up to whole milliseconds, so two computations of the same time may differ by one. */
const NEARLY = 1.01

/** The step of a store must decide as a meter in one process does. */
export const stepCases: readonly AlgorithmCase[] = [
  {
    title: 'its step decides as its meter does',
    async run(run) {
      const key = new KeyOfBoth(run)
      const taken: { readonly decision: Decision; readonly at: number }[] = []
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        const at = run.clock.now()
        const decision = key.check(run.cost())
        if (decision.allowed) taken.push({ decision, at })
        const one = taken.length > 0 && run.chance(0.3) ? run.oneOf(taken.slice(-5)) : undefined
        if (one === undefined) continue
        if (run.chance(0.4)) await run.gap()
        if (run.chance(0.3)) key.charge(one.decision, run.limit * run.random.next() * run.oneOf([0.2, 1, 2]))
        else key.refund(one.decision, run.chance(0.5) ? one.decision.cost : one.decision.cost * run.random.next(), one.at)
        key.look(run.cost())
      }
    },
  },
  {
    title: 'its step forgets a key when that changes no decision',
    async run(run) {
      const key = new KeyOfBoth(run)
      for (let step = 0; step < STEPS; step++) {
        await run.gap()
        key.check(run.cost())
        if (run.chance(0.7)) continue
        const rest = Math.ceil(key.lifetime())
        assert.ok(rest >= 0 && rest < Number.POSITIVE_INFINITY, `lifetime is ${rest}`)
        await run.pass(rest)
        for (const cost of [1, run.most, run.cost()]) key.isNew(cost)
        key.look(run.cost())
      }
    },
  },
]

/** One key, counted by the throttler under test and by the algorithm's step. */
class KeyOfBoth {
  readonly run: AlgorithmRun
  readonly limit: number
  readonly #throttler: Throttler
  readonly #step: Step
  readonly #parameters: readonly number[]
  readonly #state: number[] = []
  #taken = 0

  constructor(run: AlgorithmRun) {
    this.run = run
    this.limit = run.limit
    this.#throttler = run.throttler()
    this.#step = (run.subject.algorithm as Required<Algorithm>).step
    const [policy] = this.#throttler.policies
    assert.ok(policy)
    this.#parameters = this.#step.parameters(policy)
  }

  check(cost: number): Decision {
    const decision = this.#throttler.check('key', cost)
    this.run.note(`${cost} ${decision.allowed ? '✓' : '✗'}`)
    const verdict = this.#step.take(this.#state, this.run.clock.now(), cost, this.limit, this.#parameters)
    if (decision.allowed) this.#taken += cost
    this.#agree(decision, verdict)
    this.look(0.5 * cost)
    return decision
  }

  /** Peeks at both. A peek changes nothing, and both return the same remaining units. */
  look(cost: number): void {
    const before = [...this.#state]
    const verdict = this.#step.take(this.#state, this.run.clock.now(), 0, this.limit, this.#parameters)
    assert.deepEqual(this.#state, before, 'a look has changed the state')
    const left = this.#throttler.peek('key', cost).remaining
    assert.ok(Math.abs(left - verdict.remaining) <= this.#slack, `${left} remain, and ${verdict.remaining} by the step`)
  }

  charge(decision: Decision, units: number): void {
    this.run.note(`charge ${units}`)
    this.#throttler.charge(decision, units)
    this.#taken += units
    this.#step.add(this.#state, this.run.clock.now(), units, this.limit, this.#parameters)
  }

  refund(decision: Decision, units: number, at: number): void {
    if (!(units > 0)) return
    this.run.note(`refund ${units}`)
    this.#throttler.refund(decision, units)
    this.#step.giveBack(this.#state, at, units, this.run.clock.now(), this.limit, this.#parameters)
  }

  lifetime(): number {
    return this.#step.lifetime(this.#state, this.run.clock.now(), this.limit, this.#parameters)
  }

  /** Checks that the step treats the key like an unused one. */
  isNew(cost: number): void {
    const now = this.run.clock.now()
    const [known, unknown] = [[...this.#state], []].map((state) => this.#step.take(state, now, cost, this.limit, this.#parameters))
    assert.ok(known !== undefined && unknown !== undefined)
    assert.equal(known.allowed, unknown.allowed)
    assert.ok(Math.abs(known.remaining - unknown.remaining) <= this.#slack, `${known.remaining} remain, ${unknown.remaining} of a new key`)
    for (const told of ['resetAfterMs', 'delayMs'] as const)
      assert.ok(Math.abs(known[told] - unknown[told]) <= NEARLY, `${told} of a new key`)
  }

  get #slack(): number {
    return 1e-9 * (this.limit + this.#taken)
  }

  #agree(decision: Decision, verdict: Verdict): void {
    assert.equal(verdict.allowed, decision.allowed, `the step ${verdict.allowed ? 'allows' : 'rejects'}`)
    const { remaining, retryAfterMs, delayMs: delay } = decision
    assert.ok(Math.abs(remaining - verdict.remaining) <= this.#slack, `${remaining} remain, and ${verdict.remaining} by the step`)
    if (retryAfterMs === Number.POSITIVE_INFINITY) assert.equal(verdict.retryAfterMs, retryAfterMs)
    else
      assert.ok(
        Math.abs(retryAfterMs - verdict.retryAfterMs) <= NEARLY,
        `retryAfterMs ${retryAfterMs}, by the step ${verdict.retryAfterMs}`,
      )
    assert.ok(Math.abs(delay - verdict.delayMs) <= 1e-6 * this.run.interval, `delay ${delay}, by the step ${verdict.delayMs}`)
    const { resetAfterMs } = decision
    assert.ok(Math.abs(resetAfterMs - verdict.resetAfterMs) <= NEARLY, `resetAfterMs ${resetAfterMs}, by the step ${verdict.resetAfterMs}`)
  }
}
