import type { LogRecord } from '../log/record.ts'
import { Frequent } from './frequent.ts'

/** Requests of one key. */
export interface BusyKey {
  readonly key: string
  requests: number
  /** Requests in its busiest interval, and that interval's start in milliseconds since the epoch. */
  most: number
  mostAt: number
  /** Start of the interval of its last request, and the requests in it. */
  from: number
  count: number
  /** Properties of its requests since it was busy for the first time. Only the busiest keys have them. */
  traits?: Traits
}

/** The most frequent user agents, routes and statuses of a key's requests. */
export interface Traits {
  readonly agents: Frequent
  readonly routes: Frequent
  readonly statuses: Frequent
}

/** The most keys with traits. */
const MOST_TRAITS = 1_000
/** Requests in one interval from which on a key has traits. With many such keys the number rises. */
const FIRST_TRAITS = 3

/** Counts each key's requests in fixed intervals of the Unix epoch, as `fixedWindow` does. */
export class Busiest {
  readonly #interval: number
  readonly #keys = new Map<string, BusyKey>()
  /** How many intervals of a key have this number of requests. */
  readonly #intervals = new Map<number, number>()
  #traits: BusyKey[] = []
  #traitsFrom = FIRST_TRAITS
  #sorted: readonly BusyKey[] | undefined
  requests = 0

  /** @param interval milliseconds */
  constructor(interval: number) {
    this.#interval = interval
  }

  /** Number of keys. */
  get keys(): number {
    return this.#keys.size
  }

  /** @param record not earlier than in previous calls */
  add(name: string, record: LogRecord): void {
    const from = Math.floor(record.time / this.#interval) * this.#interval
    this.requests++
    const key = this.#keys.get(name) ?? this.#added(name, from)
    if (key.from !== from) {
      this.#fold(key)
      key.from = from
    }
    key.requests++
    if (++key.count > key.most) {
      key.most = key.count
      key.mostAt = from
      if (key.traits === undefined && key.count >= this.#traitsFrom) this.#trait(key)
    }
    const { traits } = key
    if (traits === undefined) return
    traits.agents.add(record.field('user-agent') ?? '-')
    traits.routes.add(`${record.method} ${record.target.split('?', 1)[0]}`)
    traits.statuses.add(record.status ?? '-')
  }

  /** Ends the counts, after the last request. */
  close(): void {
    for (const key of this.#keys.values()) this.#fold(key)
    this.#sorted = [...this.#keys.values()].sort((one, other) => other.most - one.most || other.requests - one.requests)
  }

  /** The keys with more requests than this in one interval, busiest first. */
  above(limit: number): readonly BusyKey[] {
    const sorted = this.#sorted ?? []
    const end = sorted.findIndex(({ most }) => most <= limit)
    return end < 0 ? sorted : sorted.slice(0, end)
  }

  /** The least limit that is never exceeded by this part of the keys (the nearest rank). */
  leaving(part: number): number {
    const sorted = this.#sorted ?? []
    return sorted[sorted.length - Math.max(1, Math.ceil(part * sorted.length))]?.most ?? 0
  }

  /** Requests that an exact fixed window with this limit rejects. */
  rejected(limit: number): number {
    let rejected = 0
    for (const [count, intervals] of this.#intervals) if (count > limit) rejected += (count - limit) * intervals
    return rejected
  }

  #added(name: string, from: number): BusyKey {
    // Copies the text, because a substring keeps the whole piece of the log in memory.
    const key = { key: Buffer.from(name).toString(), requests: 0, most: 0, mostAt: from, from, count: 0 }
    this.#keys.set(key.key, key)
    return key
  }

  #fold(key: BusyKey): void {
    if (key.count > 0) this.#intervals.set(key.count, (this.#intervals.get(key.count) ?? 0) + 1)
    key.count = 0
  }

  #trait(key: BusyKey): void {
    key.traits = { agents: new Frequent(), routes: new Frequent(), statuses: new Frequent() }
    this.#traits.push(key)
    if (this.#traits.length <= MOST_TRAITS) return
    this.#traits.sort((one, other) => other.most - one.most)
    this.#traitsFrom = (this.#traits[MOST_TRAITS / 2] as BusyKey).most + 1
    for (const one of this.#traits) if (one.most < this.#traitsFrom) delete one.traits
    this.#traits = this.#traits.filter(({ traits }) => traits !== undefined)
  }
}
