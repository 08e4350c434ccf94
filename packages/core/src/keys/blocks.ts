import { ANNOUNCED, GLOBAL, LOCAL, type SourceIndex } from '../report/stats.ts'
import { BLOCKED, type KeyTable } from './key-table.ts'
import type { Growth, Offences } from './offences.ts'

/** A key that is rejected until a time on the monotonic clock. */
export interface Block {
  until: number
  manual: boolean
  /** The source of the block. */
  source: SourceIndex
  /** Milliseconds by which the store's end may be later, because its answer took time. Clients have already received `until`. */
  slack: number
}

/** An announced block that ends at most this much later than the known one is the same block, in milliseconds. */
const MOST_ANNOUNCEMENT_DELAY = 100
/** Milliseconds by which a difference of times may be wrong. A request that comes exactly when its block ends must not be early. */
const ROUNDING = 2e-6
/** The slack of a block that the store has not answered yet. Until then only the end in this process counts. */
export const UNANSWERED: number = Number.POSITIVE_INFINITY

/** The parts of the limiter that blocks need. */
export interface BlocksOwner {
  readonly policy: { readonly cooldown: number; readonly cooldownGrowth: Growth | undefined; readonly interval: number }
  readonly table: KeyTable
  /** Whether limits are divided because the store has not answered yet: exceeding such a limit starts no cooldown. */
  readonly expecting: boolean
  keyOf(slot: number): string
  /** The key as the store receives it. No user's key can be equal to the key of the shared counter. */
  idOf(slot: number): string
  /** Called if the key's gate must not decide its next request. */
  recheck(slot: number): void
  /** Called when a block begins. `forMs` is in milliseconds. */
  blocked(key: string, forMs: number, cause: 'exceeded' | 'remote'): void
  unblocked(key: string, cause: 'remote' | 'expired'): void
  /** Reports to other processes, if there are any, that a key exceeded its limit. `remaining` is without growth. */
  tellExceeded(slot: number, remaining: number, until: number): void
}

/** The blocks of a policy's keys in this process: its own, and blocks that the store or another process reported. */
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

  /** The block of a slot, if it still lasts. */
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

  /** Forgets a slot's block, because the slot is about to get another key. */
  forget(slot: number): void {
    this.#blocks.delete(slot)
  }

  /** Forgets how often a key was blocked. */
  forgive(id: string): void {
    this.#offences?.forget(id)
  }

  /** The store keys that are blocked or were blocked lately, without those that are only blocked manually. */
  blockedIds(): Set<string> {
    const blocked = [...this.#blocks].filter(([, { manual }]) => !manual).map(([slot]) => this.#owner.idOf(slot))
    return new Set([...blocked, ...(this.#offences?.ids() ?? [])])
  }

  /**
   * Applies a block that the store or another process reported.
   *
   * @param remaining milliseconds for which the block lasted when it was reported. 0 lifts it
   * @param manual whether the block is manual
   * @param uncertainty milliseconds by which the estimate of the store's clock may be wrong
   * @param roundTrip milliseconds until the reply with the block arrived, or undefined for an announcement
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
   * Blocks a key that exceeded its limit, in all processes. A growing cooldown starts with a length by the blocks that this process
   * remembers. The store counts the key's blocks of all processes, and answers with the real length. The two differ only if this process
   * missed an earlier block, for example because it started later.
   *
   * @param least the earliest end of the block, on the monotonic clock
   */
  startCooldown(slot: number, now: number, least: number): void {
    const owner = this.#owner
    // Other processes may not have used their parts of the limit.
    if (owner.expecting) return
    const { cooldown, cooldownGrowth: growth } = owner.policy
    // The store grows this length too, so that both get the same block.
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
