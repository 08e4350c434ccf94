import assert from 'node:assert/strict'
import {
  type AcquireError,
  type AcquireOptions,
  type AnyPolicyOptions,
  type Clock,
  createThrottler,
  type PolicyOptions,
  systemClock,
  type Throttler,
  type ThrottlerOptions,
  type TimerHandle,
} from '@weir/core'
import { simulatedStore } from '../stores/simulated-store.ts'
import { manualClock } from '../time/manual-clock.ts'
import type { WaitingFixture, WaitingUnderTest } from './subject.ts'

/** Milliseconds after which processes are connected to their store and count each other. */
const CONNECTED = 1_200
/** Milliseconds for which a request keeps its slot. */
const BUSY = 40

/** A request of `schedule`. Times are milliseconds of the monotonic clock. */
export interface Scheduled {
  readonly number: number
  readonly priority: number
  readonly came: number
  /** The time of its start, and its position among all starts. */
  at?: number
  place?: number
  error?: AcquireError
  /** The time of its start or failure. */
  ended?: number
}

/** One promise of the waiting contract. */
export interface WaitingCase {
  readonly title: string
  /** The parts of the subject that the case requires: a store, or a coordination in which processes take turns. */
  readonly needs?: 'store' | 'turns'
  run(run: WaitingRun): Promise<void>
}

/** The priorities, the least important first. */
export const PRIORITIES = ['sheddable', 'low', 'default', 'high', 'critical'] as const

/** Timers of one process. */
interface Timers {
  /** Timers that were ever set. */
  set: number
  /** Timers that are set now. */
  readonly outstanding: Set<TimerHandle>
}

/** A clock that counts its timers. */
function counting(clock: Clock, timers: Timers): Clock {
  const { outstanding } = timers
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    defer: (callback) => clock.defer(callback),
    setTimeout(callback, delay) {
      const handle = clock.setTimeout(() => {
        outstanding.delete(handle)
        callback()
      }, delay)
      outstanding.add(handle)
      timers.set++
      return handle
    },
    clearTimeout(handle) {
      outstanding.delete(handle)
      clock.clearTimeout(handle)
    },
  }
}

/** One test: the processes, their store and their time. */
export class WaitingRun {
  readonly fixture: WaitingFixture
  readonly subject: WaitingUnderTest
  readonly clock: Clock
  readonly #timers = new Map<Throttler, Timers>()
  #requests = 0
  #starts = 0

  constructor(subject: WaitingUnderTest, fixture: WaitingFixture) {
    this.subject = subject
    this.fixture = fixture
    this.clock = fixture.clock ?? systemClock
  }

  /** Whether requests use slots until they end. */
  get slots(): boolean {
    return this.subject.algorithm.slots !== undefined
  }

  /** Whether time passes by itself, even while code runs. */
  get real(): boolean {
    return this.fixture.pass === undefined
  }

  get now(): number {
    return this.clock.monotonic()
  }

  /** Starts a process with one policy, and waits until it is connected to its store and counts the other processes. */
  async process(policy: Partial<PolicyOptions> = {}, options: Partial<ThrottlerOptions> = {}): Promise<Throttler> {
    const { algorithm, coordination } = this.subject
    // Slots have no interval.
    const own = { name: 'p', limit: 10, interval: 1_000, algorithm, coordination, ...policy, ...(this.slots && { interval: undefined }) }
    const timers: Timers = { set: 0, outstanding: new Set() }
    const store = coordination === 'local' ? undefined : this.fixture.store?.()
    const policies = [own as unknown as AnyPolicyOptions]
    const throttler = createThrottler({ policies, clock: counting(this.clock, timers), ...(store && { store }), ...options })
    this.#timers.set(throttler, timers)
    throttler.start()
    await this.pass(CONNECTED)
    return throttler
  }

  timersOf(throttler: Throttler): { readonly set: number; readonly outstanding: number } {
    const { set, outstanding } = this.#timers.get(throttler) as Timers
    return { set, outstanding: outstanding.size }
  }

  /** Calls `schedule` for a request of a key. */
  schedule(throttler: Throttler, options: AcquireOptions = {}, key = 'a'): Scheduled {
    const priority = PRIORITIES.indexOf(options.priority ?? 'default')
    const request: Scheduled = { number: this.#requests++, priority, came: this.now }
    const start = async () => {
      request.at = request.ended = this.now
      request.place = this.#starts++
      if (this.slots) await new Promise((resolve) => this.clock.setTimeout(() => resolve(undefined), BUSY))
    }
    throttler.schedule(key, start, { timeout: '30s', ...options }).catch((error: AcquireError) => {
      request.error = error
      request.ended = this.now
    })
    return request
  }

  /** Uses up the limit of a key. Slots stay in use. */
  async fill(throttler: Throttler, key = 'a', limit = 10): Promise<void> {
    for (let i = 0; i < limit; i++) {
      const acquired = throttler.tryAcquire(key)
      await this.pass(10)
      if (!(await acquired).allowed) return
    }
  }

  /** Waits for the start of an interval of the wall clock, so that several runs start alike. */
  async align(interval: number): Promise<void> {
    await this.pass(interval - (this.clock.now() % interval))
  }

  async pass(milliseconds: number): Promise<void> {
    if (this.fixture.pass !== undefined) return await this.fixture.pass(milliseconds)
    // This timer keeps the process alive, unlike timers of the clock.
    await new Promise((resolve) => setTimeout(resolve, milliseconds))
  }

  /** Lets time pass until a condition is true, and fails after `longest` milliseconds. */
  async until(isTrue: () => boolean, what: string, longest = 20_000): Promise<void> {
    const end = this.now + longest
    while (!isTrue()) {
      assert.ok(this.now < end, `${what}: not within ${longest} ms`)
      await this.pass(20)
    }
  }

  /** Closes a process, and lets the time pass that this needs. Returns the milliseconds that it took. */
  async close(throttler: Throttler): Promise<number> {
    const begun = this.now
    let took = Number.NaN
    void throttler.close().then(() => (took = this.now - begun))
    await this.until(() => !Number.isNaN(took), 'close() ends')
    return took
  }

  async end(): Promise<void> {
    for (const throttler of this.#timers.keys()) await this.close(throttler)
    await this.fixture.close?.()
  }
}

/** Virtual time, with a store whose round trip is 1 ms. */
export function virtualFixture(): WaitingFixture {
  const clock = manualClock()
  const store = simulatedStore({ time: clock.time, storeTimeout: 300 })
  const { kind, decides, reserves, coordinate } = store
  return {
    clock,
    pass: async (milliseconds) => {
      await clock.advance(milliseconds)
      await store.opened()
    },
    // Each process gets its own value, because throttlers that share one are one process to the store.
    store: () => ({ kind, decides, reserves, coordinate, open: (node) => store.open(node) }),
    goAway: async () => {
      store.fail('hang')
      return () => store.restore()
    },
  }
}
