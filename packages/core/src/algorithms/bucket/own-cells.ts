import { sumOf } from '../../keys/units.ts'
import type { Cell } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { drained } from './step.ts'

/** Own units of some cells, all sent as of the first of them. */
interface OwnCell {
  ordinal: Ordinal
  taken: number
  given: number
  /** What the store has acknowledged. */
  takenSent: number
  givenSent: number
  /** What was ever sent: the store may have it. */
  takenTold: number
  givenTold: number
}

/** Cells that are kept at most; only while the store is away there are so many. */
const MOST = 24

/** What a node has admitted of one key lately, oldest first. Usually one to three cells. */
export class OwnCells {
  readonly #list: OwnCell[] = []

  /** The first cell; undefined when there are none. */
  get oldest(): Ordinal | undefined {
    return this.#list[0]?.ordinal
  }

  /** @param group cells that count as one */
  add(ordinal: Ordinal, units: number, group: number): void {
    const list = this.#list
    let cell = list.at(-1)
    if (cell === undefined || ordinal - cell.ordinal >= group) {
      cell = { ordinal, taken: 0, given: 0, takenSent: 0, givenSent: 0, takenTold: 0, givenTold: 0 }
      list.push(cell)
    }
    cell.taken = sumOf(cell.taken, units)
  }

  /** Refunds units that were taken in the cell `ordinal`, as many as are left of it; returns how many. */
  giveBack(ordinal: Ordinal, units: number): number {
    const cell = this.#list.findLast((one) => one.ordinal <= ordinal)
    if (cell === undefined) return 0
    const back = Math.min(units, cell.taken - cell.given)
    cell.given = sumOf(cell.given, back)
    return back
  }

  /** Units taken that the store has not acknowledged; those in flight included. */
  unsent(): number {
    let sum = 0
    for (const { taken, takenSent } of this.#list) sum += taken - takenSent
    return sum
  }

  /** The first cell of which the store has not acknowledged all. */
  unsentSince(): Ordinal | undefined {
    return this.#list.find(({ taken, takenSent }) => taken > takenSent)?.ordinal
  }

  givenUnsent(): boolean {
    return this.#list.some(({ given, givenSent }) => given > givenSent)
  }

  /** Own net units, and those that the store has acknowledged. */
  own(): number {
    let sum = 0
    for (const { taken, given } of this.#list) sum += taken - given
    return sum
  }

  acknowledged(): number {
    let sum = 0
    for (const { takenSent } of this.#list) sum += takenSent
    return sum
  }

  /**
   * What a bucket would hold at `at` that had got nothing but the units that the store does not know of.
   *
   * @param surely - not those that are under way to it either
   */
  levelUnsent(at: number, width: number, limit: number, interval: number, surely: boolean): number {
    let level = 0
    let since = 0
    for (const { ordinal, taken, given, takenSent, givenSent, takenTold, givenTold } of this.#list) {
      const more = surely ? taken - takenTold : taken - takenSent
      const back = surely ? given - givenTold : given - givenSent
      const units = more - back
      if (more === 0 && back === 0) continue
      const begin = ordinal * width
      level = Math.max(0, drained(level, begin - since, limit, interval) + units)
      since = begin
    }
    return drained(level, at - since, limit, interval)
  }

  /**
   * What the store lacks, as it is sent.
   *
   * @param again - also what it has acknowledged
   */
  toSend(again: boolean): Cell[] {
    const cells: Cell[] = []
    for (const cell of this.#list) {
      const { ordinal, taken, given, takenSent, givenSent } = cell
      if (taken === takenSent && given === givenSent && !again) continue
      cell.takenTold = taken
      cell.givenTold = given
      cells.push({ ordinal, taken, given })
    }
    return cells
  }

  /** The store has these. Returns the units that are new to it. */
  acknowledge(cells: readonly Cell[]): number {
    let units = 0
    for (const { ordinal, taken, given } of cells) {
      const cell = this.#list.find((one) => one.ordinal === ordinal)
      if (cell === undefined) continue
      units += Math.max(0, taken - cell.takenSent)
      cell.takenSent = Math.max(cell.takenSent, taken)
      cell.givenSent = Math.max(cell.givenSent, given)
    }
    return units
  }

  /** The store lost its data. */
  forgetSent(): void {
    for (const cell of this.#list) {
      cell.takenSent = 0
      cell.givenSent = 0
      cell.takenTold = 0
      cell.givenTold = 0
    }
  }

  /**
   * Forgets cells before `first`, which have run out.
   *
   * @param keep - not what the store lacks, which it is still to hear of; where that is much, cells become one
   */
  trim(first: Ordinal, keep: boolean): void {
    const list = this.#list
    let gone = 0
    for (const { ordinal, taken, takenSent, given, givenSent } of list) {
      if (ordinal >= first || (keep && (taken > takenSent || given > givenSent))) break
      gone++
    }
    if (gone > 0) list.splice(0, gone)
    for (let at = 1; at < list.length && list.length > MOST; at++) {
      const [before, cell] = [list[at - 1] as OwnCell, list[at] as OwnCell]
      // What the store may know under an ordinal must stay there.
      if (before.takenTold > 0 || cell.takenTold > 0) continue
      before.taken = sumOf(before.taken, cell.taken)
      before.given = sumOf(before.given, cell.given)
      list.splice(at, 1)
    }
  }

  /** Books units of cells after `running`, which a clock that was ahead has made, into the running one. None was sent yet. */
  moveBack(running: Ordinal): void {
    const list = this.#list
    const ahead = list.findIndex(({ ordinal }) => ordinal > running)
    if (ahead < 0) return
    const moved = list.splice(ahead)
    for (const { taken, given } of moved) {
      this.add(running, taken, 1)
      const cell = list.at(-1) as OwnCell
      cell.given = sumOf(cell.given, given)
    }
  }
}
