import type { Cell } from '../../store/contract.ts'
import { sumOf } from '../../store/units.ts'
import type { Ordinal } from '../../time/intervals.ts'

/** The part of the limit by which the oldest sub-window is released while it leaves. The rest of it counts in full until then. */
export const EARLY_RELEASE = 0.02
/** The same for a sub-window's usual units, if its other units leave with their part: an attack's first units are among the usual ones. */
export const USUAL_RELEASE = 0.007

/** Units of one part of one key's window, by the counts of this process. */
export interface KnownCell {
  readonly ordinal: Ordinal
  /** Net units of the other processes, at least. */
  others: number
  /** Units refunded by any process, as last received. */
  givenByAll: number
  /** Own units taken and refunded, and how many of them the store has acknowledged. */
  taken: number
  given: number
  takenSent: number
  givenSent: number
  /** Own net units in the running sync, beyond those acknowledged. */
  flight: number
}

/** Sums over all cells. */
interface Sums {
  own: number
  others: number
  /** Own units taken that the store has not acknowledged, those in flight included. */
  unsent: number
  flight: number
}

/**
 * The parts of one key's window that are not empty, oldest first. A key that is used little has few, one in a burst some hundred. So sums
 * are stored: a decision walks all cells only if some have left or changed since.
 */
export class SlidingCells {
  #list: KnownCell[] = []
  #sums: Sums | undefined
  #counted = 0
  #countedFrom: number | undefined
  #countedLeft = 0

  get empty(): boolean {
    return this.#list.length === 0
  }

  /** The newest part with units. */
  get newest(): Ordinal | undefined {
    return this.#list.findLast((cell) => netOf(cell) > 0)?.ordinal
  }

  [Symbol.iterator](): IterableIterator<KnownCell> {
    return this.#list[Symbol.iterator]()
  }

  /** Must be called after a cell was changed from outside. */
  changed(): void {
    this.#sums = undefined
    this.#countedFrom = undefined
  }

  /** The place of the first cell at `ordinal` or after it. */
  #placeOf(ordinal: number): number {
    const list = this.#list
    let low = 0
    let high = list.length
    // Most calls look for the newest one.
    if (high > 0 && (list[high - 1] as KnownCell).ordinal < ordinal) return high
    while (low < high) {
      const middle = (low + high) >> 1
      if ((list[middle] as KnownCell).ordinal < ordinal) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The cell `ordinal`, created if it does not exist. */
  at(ordinal: Ordinal): KnownCell {
    const place = this.#placeOf(ordinal)
    const found = this.#list[place]
    if (found !== undefined && found.ordinal === ordinal) return found
    const cell: KnownCell = { ordinal, others: 0, givenByAll: 0, taken: 0, given: 0, takenSent: 0, givenSent: 0, flight: 0 }
    this.#list.splice(place, 0, cell)
    return cell
  }

  find(ordinal: Ordinal): KnownCell | undefined {
    const found = this.#list[this.#placeOf(ordinal)]
    return found?.ordinal === ordinal ? found : undefined
  }

  /** Own units are allowed. */
  take(ordinal: Ordinal, units: number): void {
    const cell = this.at(ordinal)
    cell.taken = sumOf(cell.taken, units)
    if (this.#sums !== undefined) {
      this.#sums.own = sumOf(this.#sums.own, units)
      this.#sums.unsent += units
    }
    if (this.#countedFrom !== undefined) this.#counted = sumOf(this.#counted, units)
  }

  /** Refunds own units that were counted in one of these cells, in order, as far as each has them. Returns how many. */
  giveBack(ordinals: readonly Ordinal[], units: number): number {
    let back = 0
    for (const ordinal of ordinals) {
      const cell = this.find(ordinal)
      if (cell === undefined) continue
      const more = Math.min(units - back, cell.taken - cell.given)
      if (!(more > 0)) continue
      cell.given = sumOf(cell.given, more)
      back += more
    }
    if (back > 0) this.changed()
    return back
  }

  /** Moves own units of cells after `running`, which a clock that was ahead made, to the running one. */
  moveBack(running: Ordinal): void {
    let taken = 0
    let given = 0
    for (const ahead of this.#list) {
      if (ahead.ordinal <= running) continue
      taken += ahead.taken
      given += ahead.given
      ahead.taken = 0
      ahead.given = 0
    }
    if (taken === 0) return
    const cell = this.at(running)
    cell.taken = sumOf(cell.taken, taken)
    cell.given = sumOf(cell.given, given)
    this.changed()
  }

  /** Removes the cells before `oldest`. */
  dropBefore(oldest: Ordinal): void {
    const list = this.#list
    let gone = 0
    while (gone < list.length && (list[gone] as KnownCell).ordinal < oldest) gone++
    if (gone === 0) return
    list.splice(0, gone)
    this.changed()
  }

  /** Confirmed units in the cells from `oldest` on and before `end`. */
  total(oldest: Ordinal, end: number = Number.POSITIVE_INFINITY): number {
    const list = this.#list
    let sum = 0
    for (let place = this.#placeOf(oldest); place < list.length; place++) {
      const cell = list[place] as KnownCell
      if (cell.ordinal >= end) break
      sum = sumOf(sum, netOf(cell))
    }
    return sum
  }

  /** Units in the cells from `left` on, and in earlier ones whose units leave together: the first ones of a sub-window and of a group. */
  counted(bucket: Ordinal, group: Ordinal, left: Ordinal): number {
    if (this.#countedFrom !== bucket || this.#countedLeft !== left) {
      const together = (group < left ? this.unitsIn(group) : 0) + (bucket < group ? this.unitsIn(bucket) : 0)
      this.#counted = sumOf(together, this.total(left))
      this.#countedFrom = bucket
      this.#countedLeft = left
    }
    return this.#counted
  }

  /** Confirmed units in the cell `ordinal`. */
  unitsIn(ordinal: Ordinal): number {
    const cell = this.find(ordinal)
    return cell === undefined ? 0 : netOf(cell)
  }

  /** Sums over the cells from `oldest` on: all units, own ones, and own ones that the store has not acknowledged. */
  since(oldest: Ordinal): { readonly sum: number; readonly own: number; readonly unsent: number } {
    let sum = 0
    let own = 0
    let unsent = 0
    for (let place = this.#placeOf(oldest); place < this.#list.length; place++) {
      const cell = this.#list[place] as KnownCell
      own += cell.taken - cell.given
      sum += netOf(cell)
      unsent += cell.taken - cell.takenSent
    }
    return { sum, own, unsent }
  }

  #all(): Sums {
    if (this.#sums !== undefined) return this.#sums
    const sums: Sums = { own: 0, others: 0, unsent: 0, flight: 0 }
    for (const { taken, given, others, takenSent, flight } of this.#list) {
      sums.own = sumOf(sums.own, taken - given)
      sums.others += others
      sums.unsent += taken - takenSent
      sums.flight += flight
    }
    this.#sums = sums
    return sums
  }

  /** Own net units. */
  own(): number {
    return this.#all().own
  }

  /** Units of the others. */
  others(): number {
    return this.#all().others
  }

  /** Own units taken that the store has not acknowledged, those in flight included. */
  unsent(): number {
    return this.#all().unsent
  }

  /** Own units in flight. */
  flight(): number {
    return this.#all().flight
  }

  /** Whether there are refunds that the store has not acknowledged. */
  givenUnsent(): boolean {
    return this.#list.some(({ given, givenSent }) => given > givenSent)
  }

  /**
   * Marks the cells that the store lacks as in flight, and returns their absolute counts.
   *
   * @param again - also cells that it has
   */
  toSend(again: boolean): Cell[] {
    const cells: Cell[] = []
    for (const cell of this.#list) {
      if (cell.taken > cell.takenSent || cell.given > cell.givenSent || (again && cell.taken > 0)) {
        cell.flight = cell.taken - cell.takenSent
        cells.push({ ordinal: cell.ordinal, taken: cell.taken, given: cell.given })
      }
    }
    this.changed()
    return cells
  }

  /** The running sync has ended. */
  landed(): void {
    for (const cell of this.#list) cell.flight = 0
    this.changed()
  }

  /** The store lost its data, so no cell is acknowledged. */
  forgetSent(): void {
    for (const cell of this.#list) {
      cell.takenSent = 0
      cell.givenSent = 0
    }
    this.changed()
  }
}

/** Confirmed units of all processes. */
export function netOf({ others, taken, given }: KnownCell): number {
  return others + taken - given
}
