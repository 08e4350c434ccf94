import type { SyncedBlocks } from '../../counting/synced-blocks.ts'
import type { BlockChange } from '../../store/contract.ts'

/** A change of a block that the store has not answered yet. */
export interface PendingBlock {
  readonly change: BlockChange
  /** Gets the store's answer. */
  readonly blocks?: Pick<SyncedBlocks, 'answered'>
  /**
   * When the change ends, on the monotonic clock. A block's change ends with the block, even after the block was lifted. It is infinite if
   * this process had no block to lift, because other processes may have one. A reset ends when none of the cells that it cleared counts.
   */
  readonly until: number
}

/** The list is swept for ended changes when it is longer than FEW, and again each time it has grown by MORE. */
const FEW = 100
const MORE = 1 / 4
/** The most changes that are kept while the store is unavailable, and the most of them that have no known end. */
export const MOST_CHANGES = 100_000
export const MOST_ENDLESS = 1_000
/** A list that is too long is shortened by this part at once, so that it is seldom searched. */
const GOES = 1 / 10

/**
 * Changes of blocks on their way to the store, by policy and key. Only the newest change of a key counts. A change that does not reach
 * the store is sent again until it ends.
 */
export class BlockChanges {
  /** Changes to send, oldest first. */
  readonly #waiting = new Map<string, PendingBlock>()
  /** The newest change of each key that the store has not answered yet: waiting or under way. Older ones no longer count. */
  readonly #newest = new Map<string, PendingBlock>()
  #notBefore = Number.NEGATIVE_INFINITY
  #sweepAt = FEW

  /** Whether any change waits to be sent. */
  get waiting(): boolean {
    return this.#waiting.size > 0
  }

  /** The number of changes to send. */
  get size(): number {
    return this.#waiting.size
  }

  /** Nothing is sent before this time, because part of the store (one slot of a cluster) did not accept the last changes. */
  get notBefore(): number {
    return this.#notBefore
  }

  add(pending: PendingBlock): void {
    if (pending.change.kind === 'reset') this.#forgetCooldown(pending.change)
    const id = blockId(pending.change)
    this.#waiting.delete(id)
    this.#waiting.set(id, pending)
    this.#newest.set(id, pending)
  }

  /** Removes the oldest changes from the queue, to send them. */
  take(now: number, most: number): PendingBlock[] {
    const taken: PendingBlock[] = []
    if (now < this.#notBefore) return taken
    for (const [id, pending] of this.#waiting) {
      if (taken.length === most) break
      if (pending.until > now) {
        taken.push(pending)
        this.#waiting.delete(id)
      } else this.#drop(id)
    }
    return taken
  }

  /**
   * Drops ended changes and surplus ones while the store is unavailable. Cooldowns are dropped first, because each process starts them by
   * itself and clients can cause many. The oldest changes follow.
   *
   * @returns whether the list was full, so that changes were dropped before their end
   */
  limit(now: number): boolean {
    if (this.#waiting.size <= this.#sweepAt) return false
    let endless = 0
    for (const [id, { until }] of this.#waiting) {
      if (until <= now) this.#drop(id)
      else if (until === Number.POSITIVE_INFINITY) endless++
    }
    this.#dropOldest(endless - MOST_ENDLESS, ({ until }) => until === Number.POSITIVE_INFINITY)
    const { size } = this.#waiting
    if (size > MOST_CHANGES) {
      const left = this.#dropOldest(size - MOST_CHANGES * (1 - GOES), ({ change: { kind } }) => kind === 'exceeded' || kind === 'restore')
      this.#dropOldest(left, () => true)
    }
    this.#sweepAt = Math.min(MOST_CHANGES, Math.max(FEW, (1 + MORE) * this.#waiting.size))
    return size > MOST_CHANGES
  }

  /** Returns the number of surplus changes that are left. */
  #dropOldest(many: number, which: (pending: PendingBlock) => boolean): number {
    let left = many
    if (left <= 0) return 0
    for (const [id, pending] of this.#waiting) {
      if (!which(pending)) continue
      this.#drop(id)
      if (--left <= 0) return 0
    }
    return left
  }

  #drop(id: string): void {
    this.#waiting.delete(id)
    this.#newest.delete(id)
  }

  /**
   * Handles the store's reply to changes that were sent.
   *
   * @param remaining for each of `taken` the time that its key stays blocked. Undefined if the store did not accept the change
   * @param retryAfterMs the time after which rejected changes are sent again
   */
  answered(
    taken: readonly PendingBlock[],
    remaining: readonly (number | undefined)[],
    sent: number,
    now: number,
    retryAfterMs: number,
  ): void {
    taken.forEach((pending, i) => {
      const left = remaining[i]
      if (left === undefined) {
        this.#notBefore = now + retryAfterMs
        this.#sendAgain(pending, now)
      } else if (this.#finish(pending) && !ENDING.has(pending.change.kind) && left > 0) {
        // The first process sets the end for all processes, so the end in this process may have to move.
        pending.blocks?.answered(pending.change, left, sent, now)
      }
    })
  }

  /** Queues changes again that did not reach the store, as far as this process can know. */
  failed(taken: readonly PendingBlock[], now: number): void {
    for (const pending of taken) this.#sendAgain(pending, now)
  }

  /** Drops an unsent cooldown of a key that was reset, because it began before the reset. */
  #forgetCooldown(reset: BlockChange): void {
    const id = blockId({ ...reset, kind: 'exceeded' })
    if (this.#newest.get(id)?.change.kind !== 'exceeded') return
    this.#drop(id)
  }

  /** Whether the store's answer to a change still counts. If so, the change is done. */
  #finish(pending: PendingBlock): boolean {
    const id = blockId(pending.change)
    return this.#newest.get(id) === pending && this.#newest.delete(id)
  }

  /** Queues a change again, unless the key has a newer change or this one has ended. */
  #sendAgain(pending: PendingBlock, now: number): void {
    const id = blockId(pending.change)
    if (this.#newest.get(id) !== pending) return
    if (pending.until > now) this.#waiting.set(id, pending)
    else this.#newest.delete(id)
  }
}

/** The change as it is sent now, with its remaining time. */
export function changeAt({ change, until }: PendingBlock, now: number): BlockChange {
  return { ...change, remaining: change.remaining === 0 ? 0 : Math.max(1, until - now) }
}

/** Kinds of changes after which no block is expected. */
const ENDING: ReadonlySet<BlockChange['kind']> = new Set(['lift', 'reset'])

/**
 * A policy's id contains no NUL, so only changes of one key share an id. A reset and a manual block have different ids, because both apply,
 * in either order.
 */
function blockId({ policy, key, kind }: BlockChange): string {
  return `${kind === 'reset' ? 'r' : ''}${policy.id}\u0000${key}`
}
