import type { KeyTable } from '../keys/key-table.ts'

/** Slots that a new key in a full table looks at for an idle one. */
const STEP = 1_000
/** Milliseconds after which keys may have become idle: a block has ended, or units were given back. */
const AGAIN = 1_000

/** Looks for keys that may be forgotten where a table is full, once round the table in an interval, and once a second at most. */
export class RoomSearch {
  #next = 0
  #round = Number.NaN
  #begunAt = Number.NEGATIVE_INFINITY

  /**
   * @param round a new one begins anew
   * @param now if it is known, a second begins anew too
   * @param forgetIdle forgets the idle keys of the slots from the first number on, before the second one
   * @returns whether there is room now
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
