import { type Clock, type Store, systemClock, type WeirError } from '@weir/core'
import type { Announcement, Decider, HeartbeatReply, Ordinal, Question, StoreConnection, StorePolicy, Verdict } from '@weir/core/sync'
import { until } from '@weir/tooling/redis-servers'

let started = 0

export const POLICY: StorePolicy = { id: 'fixed', width: 3_600_000, cells: 1, limit: 1000, hot: Infinity, ttl: 7_200_000 }

/** One process of a test, with one running interval. */
export class TestNode {
  readonly id = `test-node-${++started}`
  readonly announcements: Announcement[] = []
  readonly warnings: WeirError[] = []
  readonly connection: StoreConnection
  readonly ordinal = Math.floor(Date.now() / POLICY.width) as Ordinal
  #decider: Promise<Decider> | undefined
  #sequence = 0

  constructor(store: Store, clock: Clock = systemClock) {
    this.connection = store.open({
      id: this.id,
      clock,
      announced: (announcement) => this.announcements.push(announcement),
      warned: (error) => this.warnings.push(error),
    })
  }

  /** Sends the units that this process has taken. Returns the total, or undefined if the key write failed. */
  async count(key: string, taken: number, policy: StorePolicy = POLICY): Promise<number | undefined> {
    const cells = [{ ordinal: this.ordinal, taken, given: 0 }]
    const { results } = await this.connection.sync({ entries: [{ policy, key, cells }], blocks: [] })
    return results[0]?.cells[0]?.taken
  }

  async beat(cursor: string | undefined = ''): Promise<HeartbeatReply> {
    const { heartbeat } = await this.connection.sync({ entries: [], blocks: [], heartbeat: { ttl: 10_000, cursor, policies: [POLICY] } })
    if (heartbeat === undefined) throw new Error('no heartbeat')
    return heartbeat
  }

  async block(key: string, remaining: number): Promise<number | undefined> {
    const { blocks } = await this.connection.sync({ entries: [], blocks: [{ policy: POLICY, key, kind: 'set', remaining }] })
    return blocks[0]
  }

  /** Sends a request for a decision. */
  async take(policy: Question['policy'], key: string, units: number, limit: number): Promise<Verdict | undefined> {
    this.#decider ??= this.connection.decider?.()
    const decider = await this.#decider
    const time = Date.now()
    const questions = [{ policy, key, kind: 'take' as const, units, limit, at: time }]
    return (await decider?.decide({ sequence: ++this.#sequence, time, questions }))?.[0]
  }

  /** The error with which a sync fails. */
  async failure(run: () => Promise<unknown>): Promise<WeirError | undefined> {
    return run().then(
      () => undefined,
      (error: WeirError) => error,
    )
  }

  /** Repeats a call until it succeeds. */
  async eventually<T>(attempt: () => Promise<T | undefined>, patience: number = 20_000): Promise<T> {
    let result: T | undefined
    await until(
      async () => {
        result = await attempt()
        return result !== undefined
      },
      'an exchange succeeds',
      patience,
    )
    return result as T
  }

  close(): Promise<void> {
    return this.connection.close()
  }
}
