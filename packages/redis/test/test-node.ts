import { type Store, systemClock, type WeirError } from '@weir/core'
import type { Announcement, HeartbeatReply, Ordinal, StoreConnection, StorePolicy } from '@weir/core/sync'
import { until } from '@weir/tooling/redis-servers'

let started = 0

export const POLICY: StorePolicy = { id: 'fixed', width: 3_600_000, cells: 1, limit: 1000, hot: Infinity, ttl: 7_200_000 }

/** One node of a test, with one running interval. */
export class TestNode {
  readonly id = `test-node-${++started}`
  readonly announcements: Announcement[] = []
  readonly warnings: WeirError[] = []
  readonly connection: StoreConnection
  readonly ordinal = Math.floor(Date.now() / POLICY.width) as Ordinal

  constructor(store: Store) {
    this.connection = store.open({
      id: this.id,
      clock: systemClock,
      announced: (announcement) => this.announcements.push(announcement),
      warned: (error) => this.warnings.push(error),
    })
  }

  /** Says how many units this node has taken; gives the total, undefined when that part failed. */
  async count(key: string, taken: number): Promise<number | undefined> {
    const cells = [{ ordinal: this.ordinal, taken, given: 0 }]
    const { results } = await this.connection.sync({ entries: [{ policy: POLICY, key, cells }], blocks: [] })
    return results[0]?.cells[0]?.taken
  }

  async beat(): Promise<HeartbeatReply> {
    const { heartbeat } = await this.connection.sync({
      entries: [],
      blocks: [],
      heartbeat: { ttl: 10_000, cursor: '', policies: [POLICY] },
    })
    if (heartbeat === undefined) throw new Error('no heartbeat')
    return heartbeat
  }

  /** Tries until it succeeds. */
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
