import type { BucketAnnounced, SlidingAnnounced } from '@weir/core/sync'
import { NOTHING, type NodeCounts } from './node-counts.ts'

/** The counts of a key that this process has in etcd, by its own record, and the announcements that it has made of the key. */
export interface Own extends SlidingAnnounced, BucketAnnounced {
  /** The revision that wrote the value, 0 for none. */
  revision: number
  /** Whether etcd has only a part of the counts, because it lost data. */
  behind: boolean
  counts: NodeCounts
  /** A write got no reply, so etcd may contain it or not. */
  unsure: boolean
  /** The counts at the last decision about announcements. */
  reported: NodeCounts
  /** Buckets: the last cell that was added to the base, and how long its level lasts. */
  folded: number
  life: number
}

const NEVER = Number.NEGATIVE_INFINITY

/** Nothing of a key was announced yet. */
export const UNANNOUNCED: Readonly<SlidingAnnounced & BucketAnnounced> = { announcedAt: NEVER, hotUntil: NEVER, hot: false }

/** The most keys that are remembered. For other keys the first transaction fails its comparison and returns the counts. */
const MOST = 50_000

/**
 * The values that this process has in etcd. If there are too many, the oldest are forgotten. The next write of a forgotten key takes two
 * round trips.
 */
export class OwnCounts {
  readonly #kept = new Map<string, Own>()

  of(name: string): Own {
    const found = this.#kept.get(name)
    if (found !== undefined) return found
    const own: Own = { revision: 0, behind: false, counts: NOTHING, unsure: false, reported: NOTHING, folded: -1, life: 0, ...UNANNOUNCED }
    this.#kept.set(name, own)
    if (this.#kept.size > MOST) this.#kept.delete(this.#kept.keys().next().value as string)
    return own
  }
}
