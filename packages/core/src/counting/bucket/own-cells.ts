import { drained } from '../../algorithms/bucket/step.ts'
import { sumOf } from '../../keys/units.ts'
import type { Cell } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { Spans } from './store-policies.ts'

/** Own units of some cells, all sent as of the first of them. */
interface OwnCell {
  ordinal: Ordinal
  /** What was known to be in the bucket before these units. */
  level: number
  taken: number
  given: number
  /** Units that were asked for in vain. They are told, and nothing depends on it that they are. */
  rejected: number
  /** What the store has acknowledged. */
  takenSent: number
  givenSent: number
  rejectedSent: number
  rejectedTold: number
  /** What was ever sent: the store may have it. */
  takenTold: number
  givenTold: number
}

/** Of more cells than this that the store knows nothing of some become one. */
const MANY = 12

/** What a node has allowed of one key lately, oldest first. Usually one to three cells. */
export class OwnCells {
  readonly #list: OwnCell[] = []
  /** Later units are of cells after this one. */
  #cut: Ordinal = Number.NEGATIVE_INFINITY as Ordinal

  /** The first cell; undefined when there are none. */
  get oldest(): Ordinal | undefined {
    return this.#list[0]?.ordinal
  }

  /** @param level - what was known to be in the bucket before these units */
  add(ordinal: Ordinal, units: number, level: number, spans: Spans): void {
    const cell = this.#cellOf(ordinal, level, spans)
    cell.taken = sumOf(cell.taken, units)
  }

  /** Later units are not to be sent as of this cell or an earlier one: what was in the bucket by then is told otherwise. */
  cut(last: Ordinal): void {
    this.#cut = last
  }

  /** As `add`, of units that were not allowed. */
  reject(ordinal: Ordinal, units: number, level: number, spans: Spans): void {
    const cell = this.#cellOf(ordinal, level, spans)
    cell.rejected = sumOf(cell.rejected, units)
  }

  #cellOf(running: Ordinal, level: number, { group, fine, drain }: Spans): OwnCell {
    const list = this.#list
    const ordinal = Math.max(running, this.#cut + 1) as Ordinal
    let cell = list.at(-1)
    const since = cell === undefined ? Number.POSITIVE_INFINITY : ordinal - cell.ordinal
    // As the bucket has not run out since, it makes no difference when these units came.
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

  /** Makes two cells one, where the store knows of neither: those by which the least is lost, the older the better. */
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
      // As much as could have run out between them, and no more than there is.
      const lost = Math.min((cell.ordinal - before.ordinal) * drain, cell.taken) / (now - cell.ordinal)
      if (lost >= least) continue
      least = lost
      place = at
    }
    if (place > 0 && untold >= MANY) this.#merge(place)
  }

  /** The cell at this place becomes part of the one before. */
  #merge(place: number): void {
    const list = this.#list
    const [before, cell] = [list[place - 1] as OwnCell, list[place] as OwnCell]
    before.taken = sumOf(before.taken, cell.taken)
    before.given = sumOf(before.given, cell.given)
    before.rejected = sumOf(before.rejected, cell.rejected)
    list.splice(place, 1)
  }

  /** Refunds units that were taken in the cell `ordinal`, as many as are left of it; returns how many. */
  giveBack(ordinal: Ordinal, units: number): number {
    const cell = this.#list.findLast((one) => one.ordinal <= ordinal)
    if (cell === undefined) return 0
    const back = Math.min(units, cell.taken - cell.given)
    cell.given = sumOf(cell.given, back)
    return back
  }

  /** As `giveBack`, of the newest units. */
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
   * Forgets cells before `first`, which have run out.
   *
   * @param keep - not what the store lacks, which it is still to hear of
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

  /** Books units of cells after `running`, which a clock that was ahead has made, into the running one. None was sent yet. */
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

/** Whether the store may know of units under this cell's ordinal: they must stay there. */
function isTold({ takenTold, rejectedTold }: OwnCell): boolean {
  return takenTold > 0 || rejectedTold > 0
}
