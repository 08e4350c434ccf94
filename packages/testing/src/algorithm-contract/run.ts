import assert from 'node:assert/strict'
import { createThrottler, type Decision, type PolicyOptions, type Throttler, type ThrottlerOptions } from '@weir/core'
import type { SeededRandom } from '../random/random.ts'
import { type ManualClock, manualClock } from '../time/manual-clock.ts'
import type { AlgorithmModel, AlgorithmUnderTest } from './model.ts'

const LIMITS = [1, 1, 2, 2.5, 3, 5, 10, 30, 100, 1000] as const
/** Whole milliseconds, so that a model computes with the same times as a decision. */
const INTERVALS = [600, 1000, 7777, 60_000, 3_600_000] as const
/** The part of the limit that counts as no units, because it is a rounding error. */
const TINY = 1e-9
/** Steps that the message of a failure shows. */
const SHOWN = 30

/** One policy under random requests at random times. The same seed gives the same run. */
export class AlgorithmRun {
  readonly random: SeededRandom
  readonly clock: ManualClock
  readonly subject: AlgorithmUnderTest
  readonly interval: number
  limit: number
  readonly #steps: string[] = []
  readonly #throttlers: Throttler[] = []

  constructor(subject: AlgorithmUnderTest, random: SeededRandom) {
    this.subject = subject
    this.random = random
    this.limit = this.oneOf(LIMITS)
    this.interval = this.oneOf(INTERVALS)
    this.clock = manualClock({ offset: random.below(this.interval), origin: random.below(2) * random.below(10_000_000) })
  }

  /** The units of an unused key. */
  get most(): number {
    return this.subject.algorithm.most?.(this.limit) ?? this.limit
  }

  /** The policy under test. */
  policy(more: Partial<PolicyOptions> = {}): PolicyOptions {
    const { limit, interval } = this
    return { algorithm: this.subject.algorithm, coordination: 'local', limit, interval, ...more }
  }

  throttler(options: Partial<ThrottlerOptions> = {}): Throttler {
    const made = createThrottler({ policies: [this.policy()], clock: this.clock, ...options })
    this.#throttlers.push(made)
    return made
  }

  key(throttler: Throttler, key = 'key'): KeyUnderTest {
    return new KeyUnderTest(this, throttler, key)
  }

  oneOf<T>(choices: readonly T[]): T {
    return choices[this.random.below(choices.length)] as T
  }

  chance(probability: number): boolean {
    return this.random.next() < probability
  }

  /** Returns a random cost: mostly a part of the limit, so that it is reached soon, but also fractions, the whole limit, and more. */
  cost(): number {
    const limit = this.most
    const kind = this.random.next()
    if (kind < 0.45) return 1
    if (kind < 0.65) return Math.ceil((this.random.next() * limit) / 3)
    if (kind < 0.8) return Math.max(0.01, this.random.next() * Math.min(2, limit))
    if (kind < 0.9) return Math.max(0.01, this.random.next() * limit)
    if (kind < 0.95) return limit
    if (kind < 0.99) return limit * (1 + this.random.next())
    return this.oneOf([Number.MAX_SAFE_INTEGER, 1e300, Number.MAX_VALUE])
  }

  /** Lets no time pass, or some: little, to the end of an interval exactly or nearly, or several intervals. */
  async gap(): Promise<void> {
    const { interval, random } = this
    const kind = random.next()
    if (kind < 0.5) return
    const tillEnd = interval - (this.clock.now() % interval)
    if (kind < 0.7) await this.pass(random.below(Math.ceil(interval / 20)))
    else if (kind < 0.8) await this.pass(random.below(interval))
    else if (kind < 0.86) await this.pass(tillEnd)
    else if (kind < 0.9) await this.pass(tillEnd - 1)
    else if (kind < 0.97) await this.pass(random.below(3 * interval))
    else await this.pass(random.below(10 * interval))
  }

  async pass(milliseconds: number): Promise<void> {
    if (milliseconds === 0) return
    this.note(`wait ${milliseconds}`)
    await this.clock.advance(milliseconds)
  }

  /** Suspends the process: time passes, and timers fire only afterwards. */
  async sleep(milliseconds: number): Promise<void> {
    this.note(`sleep ${milliseconds}`)
    this.clock.stall(this.clock.time.now + milliseconds)
    await this.clock.advance(milliseconds)
  }

  note(step: string): void {
    this.#steps.push(step)
  }

  /** The steps of the run, for the message of a failure. */
  toString(): string {
    const { limit, interval } = this
    const left = Math.max(0, this.#steps.length - SHOWN)
    return `limit ${limit}, interval ${interval}: ${left > 0 ? `… ${left} steps, ` : ''}${this.#steps.slice(left).join(', ')}`
  }

  async close(): Promise<void> {
    await Promise.all(this.#throttlers.map((throttler) => throttler.close()))
  }
}

/** A key of a throttler's first policy, and its model. */
export class KeyUnderTest {
  readonly run: AlgorithmRun
  readonly throttler: Throttler
  readonly key: string
  readonly model: AlgorithmModel
  /** Whether each request passes the run's current limit. */
  tellsLimit = false
  #taken = 0

  constructor(run: AlgorithmRun, throttler: Throttler, key: string) {
    this.run = run
    this.throttler = throttler
    this.key = key
    this.model = run.subject.model(run.interval)
  }

  /** The error that sums of fractions may have, in units. */
  get slack(): number {
    return TINY * (this.run.limit + this.#taken)
  }

  most(): number {
    return this.model.most(this.run.clock.now(), this.run.limit)
  }

  least(): number {
    const { model, run } = this
    return model.least?.(run.clock.now(), run.limit) ?? this.most()
  }

  /** Whether the definition alone decides. */
  get exact(): boolean {
    return this.model.least === undefined
  }

  /** Checks a request and compares the decision with the model, which then counts it. */
  check(cost: number): Decision {
    const most = this.most()
    const least = this.least()
    const { limit } = this.run
    const decision = this.throttler.check(this.key, this.tellsLimit ? { cost, limit } : cost)
    if (this.tellsLimit) this.note(`limit ${limit}`)
    this.note(`${this.key} ${cost} ${decision.allowed ? '✓' : `✗ ${decision.reason}`}`)
    if (decision.allowed) {
      assert.ok(cost <= most + this.slack, `${cost} units were allowed, and the definition has room for ${most}`)
    } else {
      assert.ok(cost > least - this.slack, `${cost} units were rejected, and the definition has room for ${least}`)
    }
    this.count(decision, cost)
    return decision
  }

  /** Records a decision in the model. */
  count(decision: Decision, cost: number): void {
    const at = this.run.clock.now()
    if (decision.allowed) {
      this.#taken += cost
      this.model.take(at, cost)
    } else this.model.rejected?.(at)
  }

  charge(decision: Decision, units: number): void {
    this.note(`charge ${this.key} ${units}`)
    this.throttler.charge(decision, units)
    this.#taken += units
    this.model.take(this.run.clock.now(), units)
  }

  /** Gives back units of a decision. `left` are the units that were not given back yet. */
  refund(decision: Decision, units: number, left: number, takenAt: number): void {
    this.note(`refund ${this.key} ${units}`)
    this.throttler.refund(decision, units)
    const back = Math.min(units, left)
    if (back > 0) this.model.refund(this.run.clock.now(), back, takenAt)
  }

  /** The remaining units, by a peek. */
  free(): number {
    return this.throttler.peek(this.key, 0).remaining
  }

  note(step: string): void {
    this.run.note(step)
  }
}
