import type { Cell } from '../store/contract.ts'
import { growthOver, sumOf } from '../store/units.ts'
import type { Ordinal } from '../time/intervals.ts'

/** The time of a sync, in milliseconds. */
export interface Times {
  /** The time that the processes agree on, since the epoch. It numbers the cells. */
  readonly wall: number
  readonly monotonic: number
}

/** One cell of one key: the sum over all processes, and the last counts of each. */
export class CountedCell {
  readonly ordinal: Ordinal
  taken = 0
  given = 0
  readonly #nodes = new Map<string, { taken: number; given: number }>()

  constructor(ordinal: Ordinal) {
    this.ordinal = ordinal
  }

  get net(): number {
    return this.taken - this.given
  }

  /** Whether a process has counted in it. */
  has(nodeId: string): boolean {
    return this.#nodes.has(nodeId)
  }

  /** Takes over a process's absolute counts. Both only grow, so a late duplicate changes nothing. */
  merge(nodeId: string, sent: Cell): void {
    let known = this.#nodes.get(nodeId)
    if (known === undefined) this.#nodes.set(nodeId, (known = { taken: 0, given: 0 }))
    const more = growthOver(known, sent)
    known.taken += more.taken
    known.given += more.given
    this.taken = sumOf(this.taken, more.taken)
    this.given = sumOf(this.given, more.given)
  }

  toCell(): Cell {
    return { ordinal: this.ordinal, taken: this.taken, given: this.given }
  }
}

/** The effect of one entry of a request on its key. */
export interface Applied {
  /** The totals, as in `SyncResult.cells`. */
  readonly cells: readonly Cell[]
  /** As in `News`. */
  readonly announce: boolean
}
