import { createThrottler, type Decision, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { redisStore } from '@weir/redis'
import type { Ask } from './ask.ts'
import { POLICIES } from './policies.ts'

/** The longest time in milliseconds that the start waits for Redis. Without Redis, each instance grants its share. */
const PATIENCE = 2_000

/** The longest time in milliseconds that a request waits for Redis. It is long, because scripts can wait and the limit should be exact. */
const DEADLINE = 1_000

/** Grants permits. Redis decides about each, so that all instances together grant no more than the limit. */
export class Permits {
  readonly #throttlers: ReadonlyMap<string, Throttler>
  readonly #first: Throttler

  constructor(redis: string) {
    // One store, so that the throttlers share its connection and its heartbeat.
    const store = redisStore(redis)
    const throttlers = Object.entries(POLICIES).map(([name, rule]) =>
      createThrottler({ store, policies: [{ ...rule, name, coordination: 'central', storeTimeout: DEADLINE, failMode: 'share' }] }),
    )
    this.#throttlers = new Map(Object.keys(POLICIES).map((name, i) => [name, throttlers[i] as Throttler]))
    this.#first = throttlers[0] as Throttler
  }

  get policies(): readonly string[] {
    return [...this.#throttlers.keys()]
  }

  /** The number of live instances, and the state: with `synced` Redis decides, otherwise each instance grants its share (`failMode`). */
  get health(): { readonly state: string; readonly nodes: number } {
    return { state: this.#first.state, nodes: snapshot(this.#first).nodes }
  }

  /** Connects to Redis, and returns when Redis has answered or `PATIENCE` is over. */
  async start(): Promise<void> {
    for (const throttler of this.#throttlers.values()) throttler.start()
    const until = Date.now() + PATIENCE
    while (this.#first.state !== 'synced' && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10))
  }

  ask({ policy, key, permits }: Ask): Promise<Decision> {
    return (this.#throttlers.get(policy) as Throttler).checkAsync(key, permits)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#throttlers.values()].map((throttler) => throttler.close()))
  }
}
