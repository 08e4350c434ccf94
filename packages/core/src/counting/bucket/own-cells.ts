import { drained } from '../../algorithms/bucket/step.ts'
import type { Cell } from '../../store/contract.ts'
import { sumOf } from '../../store/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { Spans } from './store-policies.ts'

/** Own units of some cells, all sent as of the first of them. */
interface OwnCell {
  ordinal: Ordinal
  /** The confirmed level of the bucket before these units. */
  level: number
  taken: number
  given: number
  /** Units of rejected requests. They are sent, but no decision depends on them. */
  rejected: number
  /** Units that the store has acknowledged. */
  takenSent: number
  givenSent: number
  rejectedSent: number
  rejectedTold: number
  /** Units that were ever sent: the store may have them. */
  takenTold: number
  givenTold: number
}

/** If there are more unsent cells than this, two of them become one. */
const MANY = 12

/** Units of one key that this process has allowed lately, oldest cell first. Usually one to three cells. */
export class OwnCells {
  readonly #list: OwnCell[] = []
  /** Later units are of cells after this one. */
  #cut: Ordinal = Number.NEGATIVE_INFINITY as Ordinal

  /** The first cell. Undefined without any. */
  get oldest(): Ordinal | undefined {
    return this.#list[0]?.ordinal
  }

  /** @param level - the confirmed level of the bucket before these units */
  add(ordinal: Ordinal, units: number, level: number, spans: Spans): void {
    const cell = this.#cellOf(ordinal, level, spans)
    cell.taken = sumOf(cell.taken, units)
  }

  /** Later units must not be sent with this cell or an earlier one, because the level sent for them covers it. */
  cut(last: Ordinal): void {
    this.#cut = last
  }

  /** As `add`, for units that were rejected. */
  reject(ordinal: Ordinal, units: number, level: number, spans: Spans): void {
    const cell = this.#cellOf(ordinal, level, spans)
    cell.rejected = sumOf(cell.rejected, units)
  }

  #cellOf(running: Ordinal, level: number, { group, fine, drain }: Spans): OwnCell {
    const list = this.#list
    const ordinal = Math.max(running, this.#cut + 1) as Ordinal
    let cell = list.at(-1)
    const since = cell === undefined ? Number.POSITIVE_INFINITY : ordinal - cell.ordinal
    // If the bucket has not emptied since, it makes no difference when these units came.
    const same = since < fine || (cell !== undefined && since < group && cell.level + cell.taken - cell.given >= since * drain)
    if (cell === undefined || !same || cell.ordinal <= this.#cut) {
      if (list.length >= MANY) this.#joinOne(ordinal, drain)
      cell = {
        ordinal,
        level,
        taken: 0,
        given: 0,
        rejected: 0,
        takenSent: 0,
        givenSent: 0,
        rejectedSent: 0,
        rejectedTold: 0,
        takenTold: 0,
        givenTold: 0,
      }
      list.push(cell)
    }
    return cell
  }

  /** Joins two unsent cells: the pair with the least loss, preferably an old one. */
  #joinOne(now: Ordinal, drain: number): void {
    const list = this.#list
    let untold = 0
    let place = 0
    let least = Number.POSITIVE_INFINITY
    for (let at = 0; at < list.length; at++) {
      const cell = list[at] as OwnCell
      if (isTold(cell)) continue
      untold++
      const before = list[at - 1]
      if (before === undefined || isTold(before)) continue
      // The units that could have drained between them, at most all of them.
      const lost = Math.min((cell.ordinal - before.ordinal) * drain, cell.taken) / (now - cell.ordinal)
      if (lost >= least) continue
      least = lost
      place = at
    }
    if (place > 0 && untold >= MANY) this.#merge(place)
  }

  /** Adds the cell at this index to the one before. */
  #merge(place: number): void {
    const list = this.#list
    const [before, cell] = [list[place - 1] as OwnCell, list[place] as OwnCell]
    before.taken = sumOf(before.taken, cell.taken)
    before.given = sumOf(before.given, cell.given)
    before.rejected = sumOf(before.rejected, cell.rejected)
    list.splice(place, 1)
  }

  /** Refunds units that were taken in the cell `ordinal`, as many as are left of it. Returns how many. */
  giveBack(ordinal: Ordinal, units: number): number {
    const cell = this.#list.findLast((one) => one.ordinal <= ordinal)
    if (cell === undefined) return 0
    const back = Math.min(units, cell.taken - cell.given)
    cell.given = sumOf(cell.given, back)
    return back
  }

  /** As `giveBack`, for the newest units. */
  giveBackLast(units: number): number {
    let left = units
    for (let at = this.#list.length - 1; at >= 0 && left > 0; at--) {
      const cell = this.#list[at] as OwnCell
      const back = Math.min(left, cell.taken - cell.given)
      cell.given = sumOf(cell.given, back)
      left -= back
    }
    return units - left
  }

  /** Units taken that the store has not acknowledged, those in flight included. */
  unsent(): number {
    let sum = 0
    for (const { taken, takenSent } of this.#list) sum += taken - takenSent
    return sum
  }

  /** The first cell with units that the store has not acknowledged. */
  unsentSince(): Ordinal | undefined {
    return this.#list.find(({ taken, takenSent }) => taken > takenSent)?.ordinal
  }

  givenUnsent(): boolean {
    return this.#list.some(({ given, givenSent }) => given > givenSent)
  }

  /** Own net units, and the part of them that the store has acknowledged. */
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
   * The level at `at` of a bucket with only the units that the store lacks.
   *
   * @param surely - without those in flight too
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
   * The cells that the store lacks, marked as sent.
   *
   * @param again - also acknowledged cells
   */
  toSend(again: boolean): Cell[] {
    const cells: Cell[] = []
    for (const cell of this.#list) {
      const { ordinal, taken, given, rejected, takenSent, givenSent, rejectedSent } = cell
      if (taken === takenSent && given === givenSent && rejected === rejectedSent && !again) continue
      cell.takenTold = taken
      cell.givenTold = given
      cell.rejectedTold = rejected
      cells.push({ ordinal, taken, given, ...(rejected > 0 && { rejected }) })
    }
    return cells
  }

  /** The store has these. Returns the units that are new to it. */
  acknowledge(cells: readonly Cell[]): number {
    let units = 0
    for (const { ordinal, taken, given, rejected = 0 } of cells) {
      const cell = this.#list.find((one) => one.ordinal === ordinal)
      if (cell === undefined) continue
      units += Math.max(0, taken - cell.takenSent)
      cell.takenSent = Math.max(cell.takenSent, taken)
      cell.givenSent = Math.max(cell.givenSent, given)
      cell.rejectedSent = Math.max(cell.rejectedSent, rejected)
    }
    return units
  }

  /** The store lost its data. */
  forgetSent(): void {
    for (const cell of this.#list) {
      cell.takenSent = 0
      cell.givenSent = 0
      cell.rejectedSent = 0
      cell.takenTold = 0
      cell.givenTold = 0
      cell.rejectedTold = 0
    }
  }

  /**
   * Removes cells before `first`, which have drained.
   *
   * @param keep - keeps cells that the store lacks
   */
  trim(first: Ordinal, keep: boolean): void {
    const list = this.#list
    let gone = 0
    for (const { ordinal, taken, takenSent, given, givenSent } of list) {
      if (ordinal >= first || (keep && (taken > takenSent || given > givenSent))) break
      gone++
    }
    if (gone > 0) list.splice(0, gone)
  }

  /** Moves units of cells after `running`, which a clock that was ahead made, to the running one. None was sent yet. */
  moveBack(running: Ordinal): void {
    const list = this.#list
    const ahead = list.findIndex(({ ordinal }) => ordinal > running)
    if (ahead < 0) return
    const moved = list.splice(ahead)
    this.#cut = Math.min(this.#cut, running) as Ordinal
    for (const { taken, given, rejected } of moved) {
      this.add(running, taken, 0, { span: 1, group: 1, fine: 1, drain: 0 })
      const cell = list.at(-1) as OwnCell
      cell.given = sumOf(cell.given, given)
      cell.rejected = sumOf(cell.rejected, rejected)
    }
  }
}

/** Whether the store may have units of this cell: they must keep its ordinal. */
function isTold({ takenTold, rejectedTold }: OwnCell): boolean {
  return takenTold > 0 || rejectedTold > 0
}
