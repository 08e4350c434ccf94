import { createThrottler, type Decision, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { redisStore } from '@weir/redis'
import type { Ask } from './ask.ts'
import { POLICIES } from './policies.ts'

/** How long a start waits for Redis, in milliseconds. Without it permits are granted by share. */
const PATIENCE = 2_000

/** How long a request waits for Redis, in milliseconds. A script can wait: a limit of six an hour had better hold. */
const DEADLINE = 1_000

/** Grants permits. Redis decides about each, so that all instances together grant no more than the limit. */
export class Permits {
  readonly #throttlers: ReadonlyMap<string, Throttler>
  readonly #first: Throttler

  constructor(redis: string) {
    // One store: the throttlers share its connection and its heartbeat.
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

  /** Instances that are alive, and whether Redis decides (`synced`) or each instance grants its share (`failMode`). */
  get health(): { readonly state: string; readonly nodes: number } {
    return { state: this.#first.state, nodes: snapshot(this.#first).nodes }
  }

  /** Connects to Redis; returns when it has answered, or when that takes too long. */
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
