import type { Cell, StorePolicy, SyncEntry } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type Account, POLICY_BYTES } from './account.ts'
import type { Applied, Times } from './cell.ts'

/** The counts of one policy's keys, by one `Shape`. */
export interface Counts {
  readonly empty: boolean
  readonly size: number
  /** @param account - pays for the memory. Returns undefined if it is used up */
  apply(nodeId: string, entry: SyncEntry, times: Times, account?: Account): Applied | undefined
  /** Forgets the counts of a key, in cells up to `last`. */
  reset(key: string, last: Ordinal): void
  /** The keys that passed `hot`, in the running cell or window. */
  hot(running: Ordinal, policy: StorePolicy, times: Times): Iterable<{ readonly key: string; readonly cells: readonly Cell[] }>
  sweep(monotonic: number): void
}

interface Kept {
  readonly width: number
  readonly cells: number
  readonly ttl: number
  readonly counts: Counts
  readonly account: Account | undefined
}

/**
 * The counts of each policy of one shape. A policy's id determines the width and the life of its cells. A process that sends other values
 * gets separate counts, because it could make the others' counts stay for ever.
 */
export class PolicyCounts {
  readonly #byId = new Map<string, Kept[]>()
  readonly #make: (monotonic: number) => Counts

  constructor(make: (monotonic: number) => Counts) {
    this.#make = make
  }

  find({ id, width, cells, ttl }: StorePolicy): Counts | undefined {
    return this.#byId.get(id)?.find((kept) => kept.width === width && kept.cells === cells && kept.ttl === ttl)?.counts
  }

  /** Finds or makes the counts of a policy. Undefined if the account is used up. */
  of(policy: StorePolicy, monotonic: number, account: Account | undefined): Counts | undefined {
    const found = this.find(policy)
    if (found !== undefined) return found
    if (account?.take(POLICY_BYTES) === false) return undefined
    const { id, width, cells, ttl } = policy
    const kept: Kept = { width, cells, ttl, counts: this.#make(monotonic), account }
    const list = this.#byId.get(id)
    if (list === undefined) this.#byId.set(id, [kept])
    else list.push(kept)
    return kept.counts
  }

  sweep(monotonic: number): void {
    for (const [id, list] of this.#byId) {
      const left = list.filter(({ counts, account }) => {
        counts.sweep(monotonic)
        if (counts.empty) account?.release(POLICY_BYTES)
        return !counts.empty
      })
      if (left.length === 0) this.#byId.delete(id)
      else if (left.length < list.length) this.#byId.set(id, left)
    }
  }

  clear(): void {
    this.#byId.clear()
  }

  get size(): number {
    let size = 0
    for (const list of this.#byId.values()) for (const { counts } of list) size += counts.size
    return size
  }
}
