import type { Expiry } from '../gateway/expiry.ts'
import type { Link } from '../gateway/link.ts'
import { get, LONGEST_TRANSACTION, MOST_OPERATIONS, type Operation, put, remove, unchanged } from '../gateway/operations.ts'
import type { PartReply } from '../gateway/replies.ts'

/** The next value of a key: a value with its lifetime in milliseconds, nothing, or unchanged (undefined). */
export type Write = { readonly value: string; readonly life: number } | 'remove' | undefined

/** A key that is written whatever its value was. */
export interface Mark {
  readonly name: string
  readonly value: string
  /** Milliseconds. */
  readonly life: number
}

/** A change of several keys together, as a function of their values. */
export interface Change<T> {
  readonly names: readonly string[]
  /** @param values undefined for missing keys. It may be called several times, so it must have no side effects */
  decide(values: readonly (string | undefined)[]): Decided<T>
}

export interface Decided<T> {
  /** One for each key. */
  readonly writes: readonly Write[]
  readonly result: T
}

interface Known {
  readonly revision: number
  readonly value: string | undefined
}

/** The most keys whose values are remembered, and the most characters of such a value. */
const MOST_KEPT = 5_000
const LONGEST_KEPT = 4_096
/**
 * How often a change is tried. When a try fails, another process's change has succeeded. With a dozen processes that write the same key all
 * the time, one change in a thousand fails this often.
 */
const MOST_TRIES = 24

/**
 * Keys that several processes change by comparing and swapping: read, decide, write if no other process has written. A process remembers
 * its last written values. So a key that only one process uses takes one round trip.
 */
export class Records {
  readonly #link: Link
  readonly #expiry: Expiry
  /** The values that this process last read or wrote. */
  readonly #kept = new Map<string, Known>()

  constructor(link: Link, expiry: Expiry) {
    this.#link = link
    this.#expiry = expiry
  }

  /**
   * Makes changes, each independently.
   *
   * @param results receives their results as they arrive. A result stays undefined if other processes were always faster
   * @param also keys that are written with each transaction that writes
   * @returns how often it was tried
   * @throws if etcd is down. A change without a result may have been made or not
   */
  async run<T>(changes: readonly Change<T>[], results: (T | undefined)[], also: readonly Mark[] = []): Promise<number> {
    const known = new Map<string, Known>()
    for (const name of changes.flatMap(({ names }) => names)) {
      const found = this.#kept.get(name)
      if (found !== undefined) known.set(name, found)
    }
    let open: readonly number[] = [...changes.keys()]
    await this.#read(open, changes, known)
    for (let tried = 0; tried < MOST_TRIES; tried++) {
      // A change without writes is done if its values were just read. Values that were only remembered must be compared first.
      if (tried > 0) open = open.filter((place) => !settled(changes[place] as Change<T>, known, results, place))
      if (open.length === 0) return tried
      // A transaction writes all or nothing, so changes that failed together are tried in smaller and smaller groups.
      const most = Math.max(1, Math.floor(MOST_OPERATIONS / 4 ** tried))
      const left: number[] = []
      for (const chunk of chunksOf(open, changes, Math.min(most, MOST_OPERATIONS - also.length))) {
        const done = await this.#expiry.renewing(() => this.#write(chunk, changes, results, known, also))
        if (!done) left.push(...chunk)
      }
      open = left
    }
    return MOST_TRIES
  }

  /** The remembered values may be wrong, because etcd lost data and its revisions start again. */
  forget(): void {
    this.#kept.clear()
  }

  /** Reads the keys that are not remembered. */
  async #read<T>(places: readonly number[], changes: readonly Change<T>[], known: Map<string, Known>): Promise<void> {
    const unread = places.filter((place) => (changes[place] as Change<T>).names.some((name) => !known.has(name)))
    for (const chunk of chunksOf(unread, changes, MOST_OPERATIONS)) {
      const names = namesOf(chunk, changes)
      this.#learn(names, (await this.#link.transact(names.map(get))).parts, known)
    }
  }

  /** Writes all changes of a chunk or none. If none, the current values are remembered for the next try. */
  async #write<T>(
    chunk: readonly number[],
    changes: readonly Change<T>[],
    results: (T | undefined)[],
    known: Map<string, Known>,
    also: readonly Mark[],
  ): Promise<boolean> {
    const names = namesOf(chunk, changes)
    const decided = chunk.map((place) => decide(changes[place] as Change<T>, known))
    const writes = decided.flatMap((one) => one.writes)
    const operations = await Promise.all([
      ...writes.map((write, i) => this.#operation(names[i] as string, write)),
      ...(writes.some((write) => write !== undefined) ? also.map(({ name, ...write }) => this.#operation(name, write)) : []),
    ])
    const compare = names.map((name) => unchanged(name, known.get(name)?.revision ?? 0))
    const success = operations.filter((operation) => operation !== undefined)
    const { succeeded, revision, parts } = await this.#link.transact(success, compare, names.map(get))
    if (!succeeded) {
      this.#learn(names, parts, known)
      return false
    }
    for (const [i, name] of names.entries()) {
      const write = writes[i]
      if (write === 'remove') this.#keep(name, { revision: 0, value: undefined }, known)
      else if (write !== undefined) this.#keep(name, { revision, value: write.value }, known)
    }
    for (const [i, place] of chunk.entries()) results[place] = (decided[i] as Decided<T>).result
    return true
  }

  async #operation(name: string, write: Write): Promise<Operation | undefined> {
    if (write === undefined) return undefined
    return write === 'remove' ? remove(name) : put(name, write.value, await this.#expiry.leaseFor(write.life))
  }

  #learn(names: readonly string[], parts: readonly PartReply[], known: Map<string, Known>): void {
    for (const [i, name] of names.entries()) {
      const held = parts[i]?.held[0]
      this.#keep(name, held === undefined ? { revision: 0, value: undefined } : { revision: held.revision, value: held.value }, known)
    }
  }

  #keep(name: string, one: Known, known: Map<string, Known>): void {
    known.set(name, one)
    this.#kept.delete(name)
    if ((one.value?.length ?? 0) > LONGEST_KEPT) return
    this.#kept.set(name, one)
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value as string)
  }
}

function namesOf<T>(chunk: readonly number[], changes: readonly Change<T>[]): readonly string[] {
  return chunk.flatMap((place) => (changes[place] as Change<T>).names)
}

function decide<T>(change: Change<T>, known: ReadonlyMap<string, Known>): Decided<T> {
  return change.decide(change.names.map((name) => known.get(name)?.value))
}

/** Returns whether a change writes nothing. If so, sets its result. */
function settled<T>(change: Change<T>, known: ReadonlyMap<string, Known>, results: (T | undefined)[], place: number): boolean {
  const { writes, result } = decide(change, known)
  if (writes.some((write) => write !== undefined)) return false
  results[place] = result
  return true
}

/** Groups changes into transactions that etcd accepts, with at most `most` keys. */
function* chunksOf<T>(places: readonly number[], changes: readonly Change<T>[], most: number): Generator<readonly number[]> {
  let chunk: number[] = []
  let keys = new Set<string>()
  for (const place of places) {
    const { names } = changes[place] as Change<T>
    const full = keys.size + names.length > most || keys.size * LONGEST_KEPT > LONGEST_TRANSACTION
    // A transaction must not write a key twice, and a second change of a key must see the first.
    if (chunk.length > 0 && (full || names.some((name) => keys.has(name)))) {
      yield chunk
      chunk = []
      keys = new Set()
    }
    chunk.push(place)
    for (const name of names) keys.add(name)
  }
  if (chunk.length > 0) yield chunk
}
