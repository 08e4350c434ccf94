import type { Expiry } from '../gateway/expiry.ts'
import type { Link } from '../gateway/link.ts'
import { get, LONGEST_TRANSACTION, MOST_OPERATIONS, type Operation, put, remove, unchanged } from '../gateway/operations.ts'
import type { PartReply } from '../gateway/replies.ts'

/** The next value of a key: a value with its lifetime in milliseconds, nothing, or unchanged (undefined). */
export type Write = { readonly value: string; readonly life: number } | 'remove' | undefined

/** A key that is written whatever it was. */
export interface Mark {
  readonly name: string
  readonly value: string
  /** Milliseconds. */
  readonly life: number
}

/** A change of some keys together, as a function of what they are. */
export interface Change<T> {
  readonly names: readonly string[]
  /** @param values undefined for what is not there. May be called several times: it changes nothing itself */
  decide(values: readonly (string | undefined)[]): Decided<T>
}

export interface Decided<T> {
  /** For each key. */
  readonly writes: readonly Write[]
  readonly result: T
}

interface Known {
  readonly revision: number
  readonly value: string | undefined
}

/** Keys whose values are remembered, and the characters of such a value at most. */
const MOST_KEPT = 5_000
const LONGEST_KEPT = 4_096
/**
 * How often a change is tried. Each time that it fails another one has succeeded, so among a dozen nodes that write the same key all
 * the time one in a thousand fails this often.
 */
const MOST_TRIES = 24

/**
 * Keys that several nodes change, by comparing and swapping: read, decide, write if nobody else has. What a node wrote last it need not
 * read again, so that a key which one node uses takes one round trip.
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
   * Makes changes, each for itself.
   *
   * @param results gets their results, as they are known; those stay undefined that others were always faster than
   * @param also what is written with each transaction that writes
   * @returns how often it was tried
   * @throws when etcd is away: what has no result then may have been done or not
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
      // As it was read a moment ago, so it was: what writes nothing is done. What was only remembered must be looked at.
      if (tried > 0) open = open.filter((place) => !settled(changes[place] as Change<T>, known, results, place))
      if (open.length === 0) return tried
      // In a transaction all are written or none: those that failed together are tried in smaller and smaller groups.
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

  /** Reads what is not remembered. */
  async #read<T>(places: readonly number[], changes: readonly Change<T>[], known: Map<string, Known>): Promise<void> {
    const unread = places.filter((place) => (changes[place] as Change<T>).names.some((name) => !known.has(name)))
    for (const chunk of chunksOf(unread, changes, MOST_OPERATIONS)) {
      const names = namesOf(chunk, changes)
      this.#learn(names, (await this.#link.transact(names.map(get))).parts, known)
    }
  }

  /** Writes a chunk of the changes, or none of it: then it is known why. */
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

/** Whether a change writes nothing; then it has its result. */
function settled<T>(change: Change<T>, known: ReadonlyMap<string, Known>, results: (T | undefined)[], place: number): boolean {
  const { writes, result } = decide(change, known)
  if (writes.some((write) => write !== undefined)) return false
  results[place] = result
  return true
}

/** As many changes together as etcd takes, of so many keys at most. */
function* chunksOf<T>(places: readonly number[], changes: readonly Change<T>[], most: number): Generator<readonly number[]> {
  let chunk: number[] = []
  let keys = new Set<string>()
  for (const place of places) {
    const { names } = changes[place] as Change<T>
    const full = keys.size + names.length > most || keys.size * LONGEST_KEPT > LONGEST_TRANSACTION
    // A transaction writes no key twice, and a second change of one must see the first.
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
