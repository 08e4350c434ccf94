import type { BlockChange, StorePolicy, SyncEntry } from '@weir/core'
import { type BucketKeys, counterKey, escapeKey, escapePolicy, intervalKey, type Keys, nameOf, offenceKey, windowKey } from './keys.ts'

/** Work of one script call at most, in cells of fixed windows and in blocks: it holds the server for a few milliseconds. */
const MOST_WORK = 40
/** What a key of a sliding window takes, whose cells are all read and handed out, and each of its cells that is sent. */
const WINDOW_WORK = 4
const WINDOW_CELL_WORK = 0.25
/** Characters of callers' keys in one script call at most, for the same reason. */
const MOST_CHARACTERS = 256 * 1024

/** One script call's worth of a request, for one bucket. */
export class Chunk {
  readonly bucket: number
  /** Which entries, and which blocks, of the request these are. */
  readonly entryPlaces: number[] = []
  readonly blockPlaces: number[] = []
  readonly keys: string[] = []
  readonly #keys: BucketKeys
  readonly #policies: unknown[] = []
  readonly #policyPlaces = new Map<StorePolicy, number>()
  readonly #entries: unknown[] = []
  readonly #blocks: unknown[] = []
  #work = 0
  #characters = 0

  constructor(bucket: number, keys: BucketKeys) {
    this.bucket = bucket
    this.#keys = keys
  }

  get full(): boolean {
    return this.#work >= MOST_WORK || this.#characters >= MOST_CHARACTERS
  }

  addEntry(place: number, { policy, cells, atMost }: SyncEntry, label: string, name: string): void {
    const policyName = escapePolicy(policy.id)
    if (policy.cells > 1) this.keys.push(windowKey(this.#keys, policyName, name))
    this.#work += policy.cells > 1 ? WINDOW_WORK + cells.length * WINDOW_CELL_WORK : cells.length
    // A script finds a short label in the Redis keys, but it needs one.
    const found = name === label && (cells.length > 0 || policy.cells > 1)
    this.#entries.push(this.#policy(policy, policyName), found ? 0 : label, atMost ?? -1, cells.length)
    for (const { ordinal, taken, given } of cells) {
      if (policy.cells === 1) {
        this.keys.push(counterKey(this.#keys, policyName, name, ordinal))
        this.keys.push(intervalKey(this.#keys, policyName, name, ordinal))
      }
      this.#entries.push(ordinal, taken, given)
    }
    this.entryPlaces.push(place)
    this.#characters += label.length
  }

  addBlock(place: number, { policy, kind, remaining, growth }: BlockChange, label: string, name: string): void {
    const wanted = kind === 'lift' ? 0 : Math.max(0, remaining)
    const policyName = escapePolicy(policy.id)
    const block: unknown[] = [this.#policy(policy, policyName), label, kind, wanted]
    if (growth !== undefined) {
      block.push(finite(growth.factor), finite(growth.max), growth.memory)
      this.keys.push(offenceKey(this.#keys, policyName, name))
    }
    this.#blocks.push(block)
    this.#work++
    this.blockPlaces.push(place)
    this.#characters += label.length
  }

  /** The script's argument. */
  argument(common: object): string {
    return JSON.stringify({ ...common, prefix: this.#keys.prefix, policies: this.#policies, blocks: this.#blocks, entries: this.#entries })
  }

  #policy(policy: StorePolicy, name: string): number {
    let place = this.#policyPlaces.get(policy)
    if (place === undefined) {
      const { width, cells, limit, hot, ttl } = policy
      place = this.#policies.push([name, width, cells, finite(limit), finite(hot), ttl])
      this.#policyPlaces.set(policy, place)
    }
    return place
  }
}

/** JSON has no infinity. */
function finite(value: number): number {
  return Math.min(value, Number.MAX_VALUE)
}

/** Divides a request into script calls, by bucket; those of one bucket follow each other. */
export function chunksOf(entries: readonly SyncEntry[], blocks: readonly BlockChange[], keys: Keys): ReadonlyMap<number, readonly Chunk[]> {
  const chunks = new Map<number, Chunk[]>()
  const open = (name: string): Chunk => {
    const bucket = keys.bucketOf(name)
    let list = chunks.get(bucket)
    if (list === undefined) chunks.set(bucket, (list = []))
    let chunk = list.at(-1)
    if (chunk === undefined || chunk.full) list.push((chunk = new Chunk(bucket, keys.buckets[bucket] as BucketKeys)))
    return chunk
  }
  // Blocks first, so that the entries' results already show them.
  blocks.forEach((change, place) => {
    const label = escapeKey(change.key)
    const name = nameOf(label)
    open(name).addBlock(place, change, label, name)
  })
  entries.forEach((entry, place) => {
    const label = escapeKey(entry.key)
    const name = nameOf(label)
    open(name).addEntry(place, entry, label, name)
  })
  return chunks
}
