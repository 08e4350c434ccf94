import { BUCKET_PARTS, type Cell, type Level, levelAt, type Ordinal, ordinalAt, type StorePolicy, spanOf, sumOf } from '@weir/core/sync'
import { isForgotten, type NodeCounts, readAmounts } from './node-counts.ts'

/**
 * The start of the sum over a bucket's processes: the level at the end of all cells that are too old to be sent again. Later counts for
 * such cells are dropped. Without a base, processes would have to keep their counts until the bucket runs out.
 */
export interface Base {
  /** The last of these cells, -1 for none. */
  readonly ordinal: number
  readonly level: number
  readonly taken: number
  readonly given: number
  readonly rejected: number
  /** The reset after which these were counted. */
  readonly epoch: number
  /** No cell is added to the base before this one, because processes may still send older counts. */
  readonly heldUntil: number
}

export const NO_BASE: Base = { ordinal: -1, level: 0, taken: 0, given: 0, rejected: 0, epoch: 0, heldUntil: 0 }

export function readBase(text: string): Base | undefined {
  const numbers = readAmounts(text)
  if (numbers?.length !== 7) return undefined
  const [after, level, taken, given, rejected, epoch, heldUntil] = numbers as [number, number, number, number, number, number, number]
  return { ordinal: after - 1, level, taken, given, rejected, epoch, heldUntil }
}

export function textOfBase({ ordinal, level, taken, given, rejected, epoch, heldUntil }: Base): string {
  return JSON.stringify([ordinal + 1, level, taken, given, rejected, epoch, heldUntil])
}

/** The state of a bucket at one revision of etcd: the base and the counts of the processes. */
export class Bucket {
  readonly #policy: StorePolicy
  readonly #base: Base
  /** Units by cell, in ascending order. */
  readonly #cells: readonly { readonly ordinal: number; taken: number; given: number; rejected: number }[]
  readonly #floors: readonly Level[]
  readonly running: Ordinal

  /** @param epoch the key's last reset, 0 for none */
  constructor(policy: StorePolicy, base: Base | undefined, nodes: Iterable<NodeCounts>, epoch: number, now: number) {
    this.#policy = policy
    this.running = ordinalAt(now, policy.width)
    this.#base = base === undefined || base.epoch < epoch ? { ...NO_BASE, epoch, heldUntil: base?.heldUntil ?? 0 } : base
    const cells = new Map<number, { ordinal: number; taken: number; given: number; rejected: number }>()
    const floors: Level[] = []
    for (const { epoch: known, floor, cells: counted } of nodes) {
      const counts = (ordinal: number): boolean => ordinal > this.#base.ordinal && !(known < epoch && isForgotten(ordinal, epoch, policy))
      for (const [at, units] of counted) {
        if (!counts(at)) continue
        // Cells in the future come from a clock that is ahead.
        const ordinal = Math.min(at, this.running)
        const sum = cells.get(ordinal) ?? { ordinal, taken: 0, given: 0, rejected: 0 }
        sum.taken = sumOf(sum.taken, units.taken)
        sum.given = Math.min(sum.taken, sumOf(sum.given, units.given))
        sum.rejected = sumOf(sum.rejected, units.rejected)
        cells.set(ordinal, sum)
      }
      if (floor !== undefined && counts(floor.ordinal) && floor.ordinal <= this.running) floors.push(floor)
    }
    this.#cells = [...cells.values()].sort((a, b) => a.ordinal - b.ordinal)
    this.#floors = floors.sort((a, b) => a.ordinal - b.ordinal)
  }

  /** Units in the bucket at the start of the running cell, including the units of that cell. */
  get level(): number {
    return this.#levelAt(this.running)
  }

  /** The cell for replies and announcements. */
  get cell(): Cell {
    let { taken, given, rejected } = this.#base
    for (const cell of this.#cells) {
      taken = sumOf(taken, cell.taken)
      given = sumOf(given, cell.given)
      rejected = sumOf(rejected, cell.rejected)
    }
    return { ordinal: this.running, taken, given: Math.min(given, taken), level: this.level, ...(rejected > 0 && { rejected }) }
  }

  /**
   * Returns the base to write, with the milliseconds that it must last, or undefined if the known one is still good. A key's first units
   * make one. So does the end of a silence of half a span, after which processes may send older counts than usual. This base adds only
   * cells that were old before the silence, and stays for a span. If this process was silent, others may have been silent too, even if one
   * of them has just written. So the base then adds only cells that were old before this process's silence.
   *
   * @param written the newest cell that any process wrote before this write, undefined for none
   * @param own the last cell that this process wrote before, undefined for none
   */
  due(
    known: Base | undefined,
    written: number | undefined,
    own: number | undefined,
  ): { readonly base: Base; readonly life: number } | undefined {
    const span = spanOf(this.#policy)
    const held = { heldUntil: this.running + span }
    if (known === undefined || known.epoch < this.#base.epoch) return this.#lasting({ ...this.#base, ...held })
    const holds = this.running < known.heldUntil
    const silent = (last: number): boolean => this.running - last > span / 2
    if (written !== undefined && silent(written)) {
      return this.#lasting({ ...this.#baseAt(written - (holds ? 2 : 1) * span - 1), ...held })
    }
    // A limit with a longer span, or a clock that was ahead, may have set it too far in the future.
    if (known.heldUntil > held.heldUntil) return this.#lasting({ ...this.#base, ...held })
    if (holds || own === undefined) return undefined
    const last = silent(own) ? own : this.running
    const [oldest] = this.#cells
    const slack = Math.max(1, Math.floor(span / BUCKET_PARTS))
    if (oldest === undefined || oldest.ordinal >= last - span - slack) return undefined
    return this.#lasting(this.#baseAt(last - span - 1))
  }

  #lasting(base: Base): { readonly base: Base; readonly life: number } {
    return { base, life: this.#life(base) }
  }

  /** Returns the base with all cells up to this one added. */
  #baseAt(upTo: number): Base {
    const [oldest] = this.#cells
    if (oldest === undefined || oldest.ordinal > upTo) return this.#base
    let { taken, given, rejected } = this.#base
    for (const cell of this.#cells) {
      if (cell.ordinal > upTo) break
      taken = sumOf(taken, cell.taken)
      given = Math.min(taken, sumOf(given, cell.given))
      rejected = sumOf(rejected, cell.rejected)
    }
    return { ...this.#base, ordinal: upTo, level: this.#levelAt(upTo), taken, given, rejected }
  }

  /** The newest cell that any process has written. */
  get newest(): number | undefined {
    return this.#cells.at(-1)?.ordinal
  }

  /** The milliseconds for which the units in the bucket matter. */
  get life(): number {
    return this.#life(this.#base)
  }

  #life({ ordinal }: Base): number {
    const { width, drain = 0, ttl } = this.#policy
    const level = Math.max(this.level, ordinal < 0 ? 0 : this.#levelAt(ordinal))
    return (drain > 0 ? (level / drain) * width : 0) + 2 * spanOf(this.#policy) * width + ttl
  }

  #levelAt(end: number): number {
    const { limit, maxDebt = Number.POSITIVE_INFINITY } = this.#policy
    const units = { base: this.#base, groups: this.#cells, floors: this.#floors }
    return Math.min(levelAt(units, end, this.#policy, limit + maxDebt), Number.MAX_SAFE_INTEGER)
  }
}
