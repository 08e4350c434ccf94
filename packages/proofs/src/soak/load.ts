import { type Decision, limitedFetch, type Throttler } from '@weir/core'
import type { NodeClock } from '@weir/testing'
import { INTERVAL } from './cells.ts'

/** Parts of an interval in which the load comes. */
const STEPS = 4
/** One in this many busy keys gets a special action: its request is refunded, charged or waits, for example. */
const FEW = 20
/** The number of busy keys for each new key in an interval. */
const BUSY_PER_NEW = 8

/** The requests of a soak and all other actions on keys: on busy ones, and on keys that come only once. */
export class SoakLoad {
  readonly #throttler: Throttler
  readonly #clock: NodeClock
  readonly #waits: boolean
  readonly #busy: readonly string[]
  readonly #fetch: typeof fetch
  /** Actions at later moments of virtual time. */
  readonly #planned = new Map<number, (() => void)[]>()
  #made = 0

  constructor(throttler: Throttler, clock: NodeClock, waits: boolean, keys: number) {
    this.#throttler = throttler
    this.#clock = clock
    this.#waits = waits
    this.#busy = Array.from({ length: keys }, (_, i) => `busy client number ${i}`)
    // All requests share one response, because making one takes longer than limiting a fetch. It has no body that could be used up.
    const answer = Promise.resolve(new Response(null, { status: 429, headers: { 'retry-after': '1' } }))
    this.#fetch = limitedFetch(throttler as never, { timeout: 200, fetch: () => answer })
  }

  /** Sends one interval's requests. `advance` lets virtual time pass. */
  async interval(advance: (milliseconds: number) => Promise<void>): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      for (let i = step; i < this.#busy.length; i += STEPS) this.#request(this.#busy[i] as string, i)
      for (let i = 0; i < this.#busy.length / BUSY_PER_NEW / STEPS; i++) this.#newKeys()
      await advance(INTERVAL / STEPS)
    }
  }

  /** Sends one request of a busy key, or three. The limit is two. */
  #request(key: string, i: number): void {
    for (let asked = 0; asked < (i % 2 === 0 ? 1 : 3); asked++) this.#ask(key, (decision) => this.#afterwards(decision, i))
    if (i % FEW === 7) this.#throttler.block(key, INTERVAL / 2)
    if (i % FEW === 8) this.#throttler.unblock(key)
    if (i % FEW === 9) this.#throttler.reset(key)
    if (i % FEW === 10)
      void this.#throttler.acquire(key, { timeout: INTERVAL }).then((decision) => this.#throttler.release(decision), IGNORED)
    if (i % FEW === 11) void this.#throttler.acquire(key, { timeout: 1 }).then((decision) => this.#throttler.release(decision), IGNORED)
    // Virtual time passes faster than the code is loaded, so the first call may fail.
    if (i === 12) void this.#throttler.usage(key).catch(IGNORED)
  }

  #ask(key: string, then: (decision: Decision) => void): void {
    if (this.#waits) void this.#throttler.checkAsync(key).then(then)
    else then(this.#throttler.check(key))
  }

  /** Acts on a decision. Most slots are released, and some are forgotten. */
  #afterwards(decision: Decision, i: number): void {
    if (!decision.allowed) return
    if (i % FEW === 1) this.#throttler.refund(decision)
    if (i % FEW === 2) this.#throttler.charge(decision, 2)
    if (i % FEW === 3) this.#later(2 * INTERVAL, () => this.#throttler.refund(decision))
    if (i % FEW === 4) this.#later(2 * INTERVAL, () => this.#throttler.charge(decision, 1))
    if (i % FEW !== 5) this.#later(INTERVAL / 2, () => this.#throttler.release(decision))
  }

  /**
   * Plans an action, with one timer for all actions of a moment. A turn of the event loop for each would take longer than the
   * actions themselves.
   */
  #later(milliseconds: number, action: () => void): void {
    const at = this.#clock.monotonic() + milliseconds
    const planned = this.#planned.get(at)
    if (planned !== undefined) planned.push(action)
    else {
      const actions = [action]
      this.#planned.set(at, actions)
      this.#clock.setTimeout(() => {
        this.#planned.delete(at)
        for (const run of actions) run()
      }, milliseconds)
    }
  }

  #newKeys(): void {
    const key = (what: string): string => `${what} of a client that comes once, number ${this.#made}`
    this.#made++
    this.#throttler.reset(key('reset'))
    this.#throttler.block(key('block'), INTERVAL)
    this.#throttler.unblock(key('unblock'))
    const both = key('block and unblock')
    this.#throttler.block(both, INTERVAL)
    this.#throttler.unblock(both)
    this.#ask(key('refund'), (decision) => this.#throttler.refund(decision))
    this.#ask(key('charge'), (decision) => this.#throttler.charge(decision, 5))
    void this.#throttler.acquire(key('acquire'), { timeout: INTERVAL }).then((decision) => this.#throttler.release(decision), IGNORED)
    void this.#fetch(`http://${key('fetch').replaceAll(/[ ,]+/g, '-')}.example.com/`).then(IGNORED, IGNORED)
  }
}

const IGNORED = (): void => {}
