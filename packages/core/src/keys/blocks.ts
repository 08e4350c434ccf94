import { ANNOUNCED, GLOBAL, LOCAL, type SourceIndex } from '../report/stats.ts'
import { BLOCKED, type KeyTable } from './key-table.ts'
import type { Growth, Offences } from './offences.ts'

/** A key that is rejected until a time on the monotonic clock. */
export interface Block {
  until: number
  manual: boolean
  /** The source of the block. */
  source: SourceIndex
  /** By how many milliseconds the store's end may be later, since its answer took time; clients were told `until`. */
  slack: number
}

/** An announced block that ends at most this much later than the known one is the same block, in milliseconds. */
const MOST_ANNOUNCEMENT_DELAY = 100
/** Milliseconds by which a difference of times may be wrong: a request that comes when it was told to must not be early. */
const ROUNDING = 2e-6
/** Until the store has answered to a block, only its end here counts. */
export const UNANSWERED: number = Number.POSITIVE_INFINITY

/** The parts of the limiter that blocks need. */
export interface BlocksOwner {
  readonly policy: { readonly cooldown: number; readonly cooldownGrowth: Growth | undefined; readonly interval: number }
  readonly table: KeyTable
  /** Whether limits are divided because the store has not answered yet: exceeding such a limit starts no cooldown. */
  readonly expecting: boolean
  keyOf(slot: number): string
  /** The key as the store gets it: no user's key can be taken for that of the shared counter. */
  idOf(slot: number): string
  /** The key's gate must not decide about its next request. */
  recheck(slot: number): void
  /** A block began; `forMs` in milliseconds. */
  blocked(key: string, forMs: number, cause: 'exceeded' | 'remote'): void
  unblocked(key: string, cause: 'remote' | 'expired'): void
  /** A key exceeded its limit: the other nodes, if there are any, must know. `remaining` is without growth. */
  tellExceeded(slot: number, remaining: number, until: number): void
}

/** The blocks of a policy's keys at this node: its own, and those that the store or another node tells of. */
export class KeyBlocks {
  readonly #owner: BlocksOwner
  readonly #blocks = new Map<number, Block>()
  /** Repeated blocks that this process has seen, so that a client gets the real length of its block at once. */
  #offences: Offences | undefined

  constructor(owner: BlocksOwner) {
    this.#owner = owner
  }

  get size(): number {
    return this.#blocks.size
  }

  [Symbol.iterator](): IterableIterator<[slot: number, block: Block]> {
    return this.#blocks[Symbol.iterator]()
  }

  /** The block of a slot, if it still holds. */
  of(slot: number, now: number): Block | undefined {
    return ((this.#owner.table.flags[slot] as number) & BLOCKED) === 0 ? undefined : this.#lasting(slot, now)
  }

  #lasting(slot: number, now: number): Block | undefined {
    const block = this.#blocks.get(slot)
    if (block !== undefined && block.until - now > ROUNDING) return block
    this.clear(slot)
    if (block !== undefined) this.#owner.unblocked(this.#owner.keyOf(slot), 'expired')
    return undefined
  }

  sourceOf(slot: number): SourceIndex {
    return this.#blocks.get(slot)?.source ?? LOCAL
  }

  /** Blocks a slot here, or moves the end of its block. */
  set(slot: number, until: number, manual: boolean, source: SourceIndex = LOCAL, slack = 0): void {
    const { table } = this.#owner
    this.#blocks.set(slot, { until, manual, source, slack })
    table.flags[slot] = (table.flags[slot] as number) | BLOCKED
    this.#owner.recheck(slot)
  }

  clear(slot: number): void {
    const { table } = this.#owner
    this.#blocks.delete(slot)
    table.flags[slot] = (table.flags[slot] as number) & ~BLOCKED
    this.#owner.recheck(slot)
  }

  /** The slot is about to be another key's. */
  forget(slot: number): void {
    this.#blocks.delete(slot)
  }

  /** How often a key was blocked is forgotten. */
  forgive(id: string): void {
    this.#offences?.forget(id)
  }

  /**
   * A block that the store or another node tells of.
   *
   * @param remaining milliseconds that the block lasts when it was told; 0 lifts it
   * @param manual whether it was set by hand
   * @param uncertainty milliseconds by which the estimate of the store's clock may be wrong
   * @param roundTrip milliseconds until the reply that brought it; undefined for an announcement
   */
  hear(slot: number, remaining: number, now: number, manual: boolean, uncertainty: number, roundTrip?: number): void {
    const owner = this.#owner
    const known = this.of(slot, now)
    if (remaining > 0) {
      const until = now + Math.max(1, remaining - (roundTrip ?? 0) / 2)
      const delay = roundTrip === undefined ? MOST_ANNOUNCEMENT_DELAY : roundTrip + uncertainty
      if (known !== undefined) {
        known.manual = manual
        const later = until - known.until
        if (later >= -(roundTrip ?? 0) / 2 && later <= Math.max(delay, known.slack)) return
      }
      const { cooldown, cooldownGrowth: growth, interval } = owner.policy
      if (growth !== undefined) {
        this.#remembered(growth).learn(owner.idOf(slot), until - now, Math.max(cooldown, interval), known !== undefined, growth, now)
      }
      this.set(slot, until, manual, known?.source ?? (roundTrip === undefined ? ANNOUNCED : GLOBAL), delay)
      if (known === undefined) owner.blocked(owner.keyOf(slot), until - now, 'remote')
    } else if (known !== undefined) {
      this.clear(slot)
      owner.unblocked(owner.keyOf(slot), 'remote')
    }
  }

  /**
   * Blocks a key that exceeded its limit, at all nodes. A cooldown that grows begins here with the length that this node
   * remembers; the store, which knows the key's blocks at all nodes, answers with the real one. The two differ only where
   * this node has not heard of an earlier block, e.g. since it was started after it.
   *
   * @param least when the block ends at the earliest, on the monotonic clock
   */
  startCooldown(slot: number, now: number, least: number): void {
    const owner = this.#owner
    // Other processes may not have used their parts of the limit.
    if (owner.expecting) return
    const { cooldown, cooldownGrowth: growth } = owner.policy
    // The store lets this length grow, so that both arrive at the same block.
    const first = Math.max(least - now, cooldown)
    const length = growth === undefined ? first : this.#remembered(growth).next(owner.idOf(slot), first, growth, now)
    this.set(slot, now + length, false, LOCAL, UNANSWERED)
    owner.tellExceeded(slot, first, now + first)
    owner.blocked(owner.keyOf(slot), length, 'exceeded')
  }

  #remembered(growth: Growth): Offences {
    this.#offences ??= growth.remember()
    return this.#offences
  }
}
