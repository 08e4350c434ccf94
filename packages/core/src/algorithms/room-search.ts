import type { KeyTable } from '../keys/key-table.ts'

/** Slots that a new key in a full table looks at for an idle one. */
const STEP = 1_000

/** Looks for keys that may be forgotten where a table is full, once round the table at most: after that every key is in use. */
export class RoomSearch {
  #next = 0
  #round = Number.NaN

  /**
   * @param round a new one begins anew
   * @param forgetIdle forgets the idle keys of the slots from the first number on, before the second one
   * @returns whether there is room now
   */
  step(table: KeyTable, round: number, forgetIdle: (from: number, to: number) => void): boolean {
    if (this.#round !== round) {
      this.#round = round
      this.#next = 0
    }
    const from = this.#next
    this.#next = Math.min(table.end, from + STEP)
    forgetIdle(from, this.#next)
    return !table.full
  }
}
