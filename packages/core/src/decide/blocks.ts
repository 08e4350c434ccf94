import { BLOCKED, baseOf, type CounterTable, GATE } from '../keys/key-table.ts'
import type { BlockChange, StorePolicy } from '../store/contract.ts'
import type { StoreTime } from '../time/store-time.ts'
import { Offences } from './offences.ts'
import type { Policy } from './policy.ts'
import { GLOBAL, LOCAL, type SourceIndex } from './stats.ts'

/** A key that is refused until a time on the monotonic clock. */
export interface Block {
  until: number
  manual: boolean
  /** Who says so. */
  source: SourceIndex
  /** By how much later the store's end may be, for the way that the word of it took: a client was told `until`. */
  slack: number
}

/** An announced block that ends later than the known one by no more than this is the known one, in milliseconds. */
const MOST_ANNOUNCEMENT_DELAY = 100
/** Until the store has answered to a block, only its end here counts. */
export const UNANSWERED: number = Number.POSITIVE_INFINITY

/** What blocks need of the counter whose keys they are of. */
export interface BlocksOwner<Self> {
  readonly policy: Policy
  readonly wire: StorePolicy
  readonly table: CounterTable
  readonly host: {
    readonly time: StoreTime
    readonly connected: boolean
    changeBlock(counter: Self, change: BlockChange, until: number): void
    blocked(counter: Self, key: string, forMs: number, cause: 'excess' | 'remote'): void
    unblocked(counter: Self, key: string, cause: 'remote' | 'expired'): void
  }
  keyOf(slot: number): string
  wireKey(slot: number): string
  markStale(slot: number): void
  blockOf(slot: number, now: number): Block | undefined
}

/** The blocks of a policy's keys at this node: its own, and those that the store or another node tells of. */
export class KeyBlocks<Owner extends BlocksOwner<Owner>> {
  readonly #counter: Owner
  readonly #blocks = new Map<number, Block>()
  /** What this node has seen of repeated offences, so that a client is told the real length of its block at once. */
  readonly #offences = new Offences()

  constructor(counter: Owner) {
    this.#counter = counter
  }

  get size(): number {
    return this.#blocks.size
  }

  [Symbol.iterator](): IterableIterator<[slot: number, block: Block]> {
    return this.#blocks[Symbol.iterator]()
  }

  /** The block of a slot, if it still holds. */
  of(slot: number, now: number): Block | undefined {
    const block = this.#blocks.get(slot)
    if (block !== undefined && block.until > now) return block
    this.clear(slot)
    const { host } = this.#counter
    if (block !== undefined) host.unblocked(this.#counter, this.#counter.keyOf(slot), 'expired')
    return undefined
  }

  sourceOf(slot: number): SourceIndex {
    return this.#blocks.get(slot)?.source ?? LOCAL
  }

  /** Blocks a slot here, or moves the end of its block. */
  set(slot: number, until: number, manual: boolean, source: SourceIndex = LOCAL, slack = 0): void {
    const { table } = this.#counter
    this.#blocks.set(slot, { until, manual, source, slack })
    table.flags[slot] = (table.flags[slot] as number) | BLOCKED
    // Closed for the fast path; `reconsider` finds the block.
    table.fields[baseOf(slot) + GATE] = Number.NEGATIVE_INFINITY
  }

  clear(slot: number): void {
    const { table } = this.#counter
    this.#blocks.delete(slot)
    table.flags[slot] = (table.flags[slot] as number) & ~BLOCKED
    this.#counter.markStale(slot)
  }

  /** The slot is about to be another key's. */
  forget(slot: number): void {
    this.#blocks.delete(slot)
  }

  /** As the counter's `blockRemotely`. */
  hear(slot: number, remaining: number, now: number, roundTrip?: number, source: SourceIndex = GLOBAL): void {
    const counter = this.#counter
    const { host } = counter
    const known = counter.blockOf(slot, now)
    if (remaining > 0) {
      const until = now + Math.max(1, remaining - (roundTrip ?? 0) / 2)
      const delay = roundTrip === undefined ? MOST_ANNOUNCEMENT_DELAY : roundTrip + host.time.uncertainty(now)
      if (known !== undefined) {
        const later = until - known.until
        if (later >= -(roundTrip ?? 0) / 2 && later <= Math.max(delay, known.slack)) return
      }
      const { cooldown, cooldownGrowth: growth, interval } = counter.policy
      if (growth !== undefined) {
        this.#offences.learn(counter.wireKey(slot), until - now, Math.max(cooldown, interval), known !== undefined, growth, now)
      }
      this.set(slot, until, known?.manual ?? false, known?.source ?? source, delay)
      if (known === undefined) host.blocked(counter, counter.keyOf(slot), until - now, 'remote')
    } else if (known !== undefined) {
      this.clear(slot)
      host.unblocked(counter, counter.keyOf(slot), 'remote')
    }
  }

  /**
   * An excess blocks a key at all nodes. A cooldown that grows begins here with the length that this node's own memory
   * gives; the store, which knows the key's blocks of all nodes, answers with the real one. The two differ only where this
   * node has not heard of an earlier block, e.g. since it was started after it.
   *
   * @param least when the block ends at the earliest, on the monotonic clock
   */
  startCooldown(slot: number, now: number, least: number): void {
    const counter = this.#counter
    const { host } = counter
    const { cooldown, cooldownGrowth: growth } = counter.policy
    const key = counter.wireKey(slot)
    // What the store lets grow, so that both come to the same.
    const first = Math.max(least - now, cooldown)
    const until = now + (growth === undefined ? first : this.#offences.next(key, first, growth, now))
    this.set(slot, until, false, LOCAL, UNANSWERED)
    if (host.connected) {
      const change = { policy: counter.wire, key, kind: 'excess', remaining: first } as const
      host.changeBlock(counter, growth === undefined ? change : { ...change, growth }, now + first)
    }
    host.blocked(counter, counter.keyOf(slot), until - now, 'excess')
  }
}
