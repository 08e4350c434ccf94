import {
  type BlockChange,
  type Cell,
  lastCellOf,
  RESET_CELLS,
  type Shape,
  type StorePolicy,
  type SyncEntry,
  shapeOf,
} from '@weir/core/sync'
import {
  escapeKey,
  escapePolicy,
  type IntervalKeys,
  intervalKeys,
  type Keys,
  nameOf,
  offenceKey,
  type ShardKeys,
  windowKey,
} from '../keys/keys.ts'
import { LONGEST_TIME } from './wire.ts'

/** The most work of one script call, in cells of fixed windows and in blocks. It blocks the server for a few milliseconds. */
const MOST_WORK = 40
/** The work of a key of a sliding window, whose cells are all read and returned, and the work of each cell that is sent. */
const WINDOW_WORK = 4
const WINDOW_CELL_WORK = 0.25
/** The most characters of callers' keys in one script call, for the same reason. */
const MOST_CHARACTERS = 256 * 1024

/** A policy in a script call: its name in Redis keys, and its number in the list of policies. */
interface PolicyPlace {
  readonly name: string
  readonly number: number
}

/** Entries of one policy and cell that contain only units taken. */
interface PlainGroup {
  readonly policy: number
  readonly ordinal: number
  readonly common: IntervalKeys
  readonly names: Set<string>
  readonly taken: string[]
  readonly places: number[]
  readonly counters: string[]
  readonly cells: string[]
}

/** The part of a sync that one script call handles, for one shard. */
export class Chunk {
  readonly bucket: number
  /** The indexes of its blocks in the request. */
  readonly blockPlaces: number[] = []
  readonly #keys: ShardKeys
  readonly #policies: unknown[] = []
  readonly #policyPlaces = new Map<StorePolicy, PolicyPlace>()
  /** The Redis keys of blocks and resets. */
  readonly #blockKeys: string[] = []
  readonly #blocks: unknown[] = []
  readonly #groups: PlainGroup[] = []
  readonly #entries: unknown[] = []
  /** Values that few entries have, by the index of the entry in that list. */
  #rare: Record<number, readonly [epoch: number, keys: number, ask: 0 | 1]> | undefined
  readonly #entryKeys: string[] = []
  readonly #entryPlaces: number[] = []
  #kind: Shape = 'fixed'
  #work = 0
  #characters = 0

  constructor(bucket: number, keys: ShardKeys) {
    this.bucket = bucket
    this.#keys = keys
  }

  /** The shape of its entries that are not fixed windows. */
  get kind(): Shape {
    return this.#kind
  }

  /** Returns whether a script can handle this policy together with the entries so far. */
  takes(policy: StorePolicy): boolean {
    const kind = shapeOf(policy)
    return kind === 'fixed' || this.#kind === 'fixed' || kind === this.#kind
  }

  get full(): boolean {
    return this.#work >= MOST_WORK || this.#characters >= MOST_CHARACTERS
  }

  /** The number of results of the script: one for each block, then one for each entry. */
  get results(): number {
    let results = this.blockPlaces.length + this.#entryPlaces.length
    for (const { places } of this.#groups) results += places.length
    return results
  }

  /** Returns the indexes of its entries in the request, in the order of the script's results. */
  entryPlaces(): number[] {
    return this.#groups.flatMap(({ places }) => places).concat(this.#entryPlaces)
  }

  /** The Redis keys of the script call. */
  keys(): string[] {
    return this.#blockKeys.concat(...this.#groups.flatMap(({ counters, cells }) => [counters, cells]), this.#entryKeys)
  }

  addEntry(place: number, { policy, cells, epoch, ask }: SyncEntry, label: string, name: string): void {
    const policyPlace = this.#policy(policy)
    this.#characters += label.length
    const [cell] = cells
    const rare = epoch !== undefined || ask === true
    const simple = policy.cells === 1 && cells.length === 1 && name === label && !rare
    if (simple && cell !== undefined && cell.given === 0 && cell.taken > 0 && this.#addPlain(place, policyPlace, name, cell)) return

    if (policy.cells > 1) this.#kind = shapeOf(policy)
    this.#work += policy.cells > 1 ? WINDOW_WORK + cells.length * WINDOW_CELL_WORK : cells.length
    // A script finds a short label in the Redis keys, if there are any.
    const found = name === label && (cells.length > 0 || policy.cells > 1) && !rare
    if (rare) {
      const keys = epoch === undefined ? [] : this.#keysOfReset(policy, policyPlace.name, name, epoch)
      this.#entryKeys.push(...keys)
      this.#rare = { ...this.#rare, [this.#entries.length]: [epoch ?? 0, keys.length, ask ? 1 : 0] }
    }
    this.#entries.push(policyPlace.number, found ? 0 : label, cells.length)
    for (const { ordinal, taken, given, rejected = 0, level = 0 } of cells) {
      this.#entries.push(ordinal, units(taken), units(given))
      if (policy.drain !== undefined) this.#entries.push(units(rejected), units(level))
    }
    if (policy.cells > 1) this.#entryKeys.push(windowKey(this.#keys, policyPlace.name, name))
    else {
      const all = cells.map(({ ordinal }) => intervalKeys(this.#keys, policyPlace.name, ordinal))
      this.#entryKeys.push(...all.map(({ counterPrefix, suffix }) => counterPrefix + name + suffix))
      this.#entryKeys.push(...all.map(({ cellPrefix, suffix }) => cellPrefix + name + suffix))
    }
    this.#entryPlaces.push(place)
  }

  /** Returns false if the group contains the key already, because a script reads all keys of a group before it writes any. */
  #addPlain(place: number, policy: PolicyPlace, name: string, { ordinal, taken }: Cell): boolean {
    let group = this.#groups.find((one) => one.policy === policy.number && one.ordinal === ordinal)
    if (group === undefined) {
      const common = intervalKeys(this.#keys, policy.name, ordinal)
      group = { policy: policy.number, ordinal, common, names: new Set(), taken: [], places: [], counters: [], cells: [] }
      this.#groups.push(group)
    }
    if (group.names.has(name)) return false
    group.names.add(name)
    group.taken.push(String(units(taken)))
    group.places.push(place)
    const { counterPrefix, cellPrefix, suffix } = group.common
    group.counters.push(counterPrefix + name + suffix)
    group.cells.push(cellPrefix + name + suffix)
    this.#work++
    return true
  }

  addBlock(place: number, change: BlockChange, label: string, name: string): void {
    const { policy, kind, remaining, growth, epoch = 0, manual } = change
    const wanted = kind === 'lift' || kind === 'reset' ? 0 : time(remaining)
    const { number, name: policyName } = this.#policy(policy)
    const block: unknown[] = [number, label, kind, wanted, epoch, manual ? 1 : 0]
    if (kind === 'reset') {
      const keys = this.#keysOfReset(policy, policyName, name, epoch)
      block.push(keys.length)
      this.#blockKeys.push(...keys)
      this.#work += keys.length / 2
    } else if (growth !== undefined) {
      block.push(finite(growth.factor), time(growth.max), time(growth.memory))
      this.#blockKeys.push(offenceKey(this.#keys, policyName, name))
    }
    this.#blocks.push(block)
    this.#work++
    this.blockPlaces.push(place)
    this.#characters += label.length
  }

  /** Returns all Redis keys of a key that a reset deletes. */
  #keysOfReset(policy: StorePolicy, policyName: string, name: string, epoch: number): string[] {
    const keys = [offenceKey(this.#keys, policyName, name)]
    if (policy.cells > 1) return [...keys, windowKey(this.#keys, policyName, name)]
    const last = lastCellOf(epoch, policy.width)
    for (let ordinal = last - RESET_CELLS + 1; ordinal <= last; ordinal++) {
      const { counterPrefix, cellPrefix, suffix } = intervalKeys(this.#keys, policyName, ordinal)
      keys.push(counterPrefix + name + suffix, cellPrefix + name + suffix)
    }
    return keys
  }

  /** The script's argument. */
  argument(common: object): string {
    return JSON.stringify({
      ...common,
      prefix: this.#keys.prefix,
      policies: this.#policies,
      blocks: this.#blocks,
      plain: this.#groups.flatMap(({ policy, ordinal, taken }) => [policy, ordinal, taken.length, ...taken]),
      entries: this.#entries,
      rare: this.#rare ?? false,
    })
  }

  #policy(policy: StorePolicy): PolicyPlace {
    let place = this.#policyPlaces.get(policy)
    if (place === undefined) {
      const { width, cells, limit, hot, ttl, drain, maxDebt } = policy
      const name = escapePolicy(policy.id)
      const bucket = drain === undefined ? [] : [finite(drain), maxDebt === undefined ? false : finite(maxDebt)]
      place = { name, number: this.#policies.push([name, width, cells, finite(limit), finite(hot), time(ttl), ...bucket]) }
      this.#policyPlaces.set(policy, place)
    }
    return place
  }
}

/** JSON has no infinity. */
function finite(value: number): number {
  return Math.min(value, Number.MAX_VALUE)
}

/** Bounds a count, so that the sum of a thousand processes is still a number that the scripts accept. */
function units(count: number): number {
  return Math.min(count, Number.MAX_SAFE_INTEGER)
}

function time(milliseconds: number): number {
  return Math.max(0, Math.min(milliseconds, LONGEST_TIME))
}

/**
 * Divides a sync into script calls, by shard. Calls of one shard run in sequence. Leaves out quota, and entries of the shapes in `without`.
 */
export function chunksOf(
  entries: readonly SyncEntry[],
  blocks: readonly BlockChange[],
  keys: Keys,
  without: ReadonlySet<Shape>,
): ReadonlyMap<number, readonly Chunk[]> {
  const chunks = new Map<number, Chunk[]>()
  const open = (name: string, policy?: StorePolicy): Chunk => {
    const bucket = keys.shardOf(name)
    let list = chunks.get(bucket)
    if (list === undefined) chunks.set(bucket, (list = []))
    let chunk = list.at(-1)
    if (chunk === undefined || chunk.full || (policy !== undefined && !chunk.takes(policy)))
      list.push((chunk = new Chunk(bucket, keys.shards[bucket] as ShardKeys)))
    return chunk
  }
  // Blocks come first, so that the entries' results already show them.
  blocks.forEach((change, place) => {
    const label = escapeKey(change.key)
    const name = nameOf(label)
    open(name).addBlock(place, change, label, name)
  })
  entries.forEach((entry, place) => {
    if (entry.lease !== undefined || without.has(shapeOf(entry.policy))) return
    const label = escapeKey(entry.key)
    const name = nameOf(label)
    open(name, entry.policy).addEntry(place, entry, label, name)
  })
  return chunks
}
