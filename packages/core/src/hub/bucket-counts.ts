import type { Cell, StorePolicy, SyncEntry } from '../store/contract.ts'
import { bucketNews, levelAt } from '../store/shapes/bucket.ts'
import { type BucketRecord, bucketCell, countInBucket, isEmpty, newBucketRecord } from '../store/shapes/bucket-groups.ts'
import { type Ordinal, ordinalAt } from '../time/intervals.ts'
import { type Account, NODE_BYTES } from './account.ts'
import type { Applied, Times } from './cell.ts'
import { Generations } from './generations.ts'

interface KeyBucket extends BucketRecord {
  /** Monotonic time until which it must be kept. */
  until: number
}

/** The buckets of one policy. Buckets that drain more slowly than `Generations` forgets them are kept apart. */
export class BucketCounts {
  readonly #buckets: Generations<KeyBucket>
  readonly #indebted = new Map<string, KeyBucket>()

  constructor(monotonic: number) {
    this.#buckets = new Generations(monotonic)
  }

  /** @param account - pays for the memory. Returns undefined if it is used up */
  apply(nodeId: string, { policy, key, cells }: SyncEntry, times: Times, account?: Account): Applied | undefined {
    const found = this.#find(key)
    const running = ordinalAt(times.wall, policy.width)
    if (cells.every(isEmpty)) return { cells: [bucketCell(found, running, policy)], announce: false }
    if (account !== undefined && !this.#hasRoom(nodeId, key, cells, found, account)) return undefined
    const bucket = found ?? { ...newBucketRecord(running, policy), until: Number.NEGATIVE_INFINITY }
    const levels = countInBucket(bucket, nodeId, cells, running, policy)
    this.#keep(key, bucket, levels.after, policy, times)
    const { announce } = bucketNews(levels, bucket, policy, times.wall, times.monotonic)
    return { cells: [bucketCell(bucket, running, policy)], announce }
  }

  /** Keys that were announced as hot, unless they have drained below half of that mark. */
  *hot(running: Ordinal, policy: StorePolicy): Iterable<{ readonly key: string; readonly cells: readonly Cell[] }> {
    for (const keys of [this.#buckets, this.#indebted]) {
      for (const [key, bucket] of keys) {
        if (bucket.hot && levelAt(bucket, running, policy) >= policy.hot / 2) yield { key, cells: [bucketCell(bucket, running, policy)] }
      }
    }
  }

  sweep(monotonic: number): void {
    for (const [key, { until }] of this.#indebted) if (until <= monotonic) this.#indebted.delete(key)
    this.#buckets.sweep(monotonic)
  }

  /** Forgets the counts of a key. */
  reset(key: string): void {
    this.#buckets.delete(key)
    this.#indebted.delete(key)
  }

  get empty(): boolean {
    return this.size === 0
  }

  /** The number of keys. */
  get size(): number {
    return this.#buckets.size + this.#indebted.size
  }

  #find(key: string): KeyBucket | undefined {
    return this.#buckets.get(key) ?? this.#indebted.get(key)
  }

  #keep(key: string, bucket: KeyBucket, level: number, { ttl, width, drain = 0 }: StorePolicy, { monotonic }: Times): void {
    this.#buckets.keepFor(ttl)
    const empty = drain > 0 ? (level / drain) * width : 0
    bucket.until = monotonic + empty + ttl
    if (empty <= ttl) {
      this.#indebted.delete(key)
      this.#buckets.touch(key, bucket)
    } else {
      this.#buckets.delete(key)
      this.#indebted.set(key, bucket)
    }
  }

  /** Takes the memory that an entry needs. */
  #hasRoom(nodeId: string, key: string, cells: readonly Cell[], bucket: KeyBucket | undefined, account: Account): boolean {
    const own = bucket?.nodes.get(nodeId)
    let more = 0
    for (const cell of cells) if (!isEmpty(cell) && !own?.has(cell.ordinal)) more += 2 * NODE_BYTES
    return this.#buckets.takeRoom(key, more, (bucket?.nodes.size ?? 0) * NODE_BYTES, account)
  }
}
