import type { KeyTable } from '../keys/key-table.ts'

/** Slots that a new key in a full table searches for an idle one. */
const STEP = 1_000
/** Milliseconds after which keys may have become idle: a block has ended, or units were given back. */
const AGAIN = 1_000

/** Searches a full table for keys that may be removed: once round the table in an interval, or once a second. */
export class RoomSearch {
  #next = 0
  #round = Number.NaN
  #begunAt = Number.NEGATIVE_INFINITY

  /**
   * @param round starts the search again when it changes
   * @param now if it is known, the search also starts again after a second
   * @param forgetIdle removes the idle keys of the slots from the first number on, before the second one
   * @returns whether the table has a free slot now
   */
  step(table: KeyTable, round: number, now: number | undefined, forgetIdle: (from: number, to: number) => void): boolean {
    if (this.#round !== round || (now !== undefined && now - this.#begunAt >= AGAIN)) {
      this.#round = round
      this.#begunAt = now ?? this.#begunAt
      this.#next = 0
    }
    const from = this.#next
    this.#next = Math.min(table.end, from + STEP)
    forgetIdle(from, this.#next)
    return !table.full
  }
}
