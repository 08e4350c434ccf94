import type { SyncedBlocks } from '../../counting/synced-blocks.ts'
import type { BlockChange } from '../../store/contract.ts'

/** A change of a block that the store has not answered yet. */
export interface PendingBlock {
  readonly change: BlockChange
  /** Gets the store's answer. */
  readonly blocks?: Pick<SyncedBlocks, 'answered'>
  /**
   * When its time is over, on the monotonic clock: that of the block, also of one that was lifted; infinite where this node knew of no
   * block, as others may. Of a reset when no cell counts any more that it cleared.
   */
  readonly until: number
}

/** Ended changes are looked for when there are more than this, and again when there are this part more. */
const FEW = 100
const MORE = 1 / 4
/** While the store is unavailable so many are kept at most, and so many of those whose end nobody knows. */
export const MOST_CHANGES = 100_000
export const MOST_ENDLESS = 1_000
/** Where there are more, this part of them goes at once, so that they are seldom looked through. */
const GOES = 1 / 10

/**
 * Changes of blocks on their way to the store, by policy and key: only the newest of a key counts. One that does not reach
 * the store is sent again until its time is over.
 */
export class BlockChanges {
  /** Changes to send, oldest first. */
  readonly #waiting = new Map<string, PendingBlock>()
  /** The newest change of each key that the store has not answered yet: waiting or under way. Older ones no longer count. */
  readonly #newest = new Map<string, PendingBlock>()
  #notBefore = Number.NEGATIVE_INFINITY
  #sweepAt = FEW

  /** Whether any is to be sent. */
  get waiting(): boolean {
    return this.#waiting.size > 0
  }

  /** How many are to be sent. */
  get size(): number {
    return this.#waiting.size
  }

  /** Not before this time: part of the store (one slot of a cluster) did not take the last ones. */
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

  /** Takes the oldest ones to be sent. */
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
   * The store is unavailable, so nothing is taken: what has ended goes, and what is too many. A limit that was exceeded goes first, as
   * each node notices that by itself, and clients can cause it; then the oldest.
   *
   * @returns whether some went that had not ended
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

  /** Returns how many are still too many. */
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
   * The store has answered to what was taken.
   *
   * @param remaining for each of `taken` how long its key stays blocked; undefined where the store did not take it
   * @param retryAfterMs after so many milliseconds those are tried again
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
        // The end that the first node set holds for all, so this node's own may have to move.
        pending.blocks?.answered(pending.change, left, sent, now)
      }
    })
  }

  /** The changes did not reach the store, as far as is known, so they are sent again. */
  failed(taken: readonly PendingBlock[], now: number): void {
    for (const pending of taken) this.#sendAgain(pending, now)
  }

  /** The key was reset: that it exceeded its limit before is not told any more. */
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

  /** Queues a change again, unless a newer one of its key has come, or its time is over. */
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
 * Neither half contains NUL before the first one of the other, so no two changes share an id unless they are of one key. A
 * reset and a block set by hand both hold, whichever came first.
 */
function blockId({ policy, key, kind }: BlockChange): string {
  return `${kind === 'reset' ? 'r' : ''}${policy.id}\u0000${key}`
}
