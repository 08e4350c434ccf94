import { ROUNDING } from '../../algorithms/bucket/step.ts'
import { smooth } from '../estimate.ts'

/**
 * A node asks for places of this part of the units that wait with it. As all do so, each gets its part of the pace in every round, and none
 * has to wait until the long queue of another one is empty.
 */
const PART = 1 / 8
/**
 * Places are asked for together that lie within so many milliseconds: an exchange for each would cost more than it spreads, and what one that
 * leaves gives back is no longer than that.
 */
const TOGETHER = 40
/** Times are on whole milliseconds, and an exchange waits for so long until the next one is sent. */
const LEAST_LEAD = 5

/** Units that may go one after another, evenly: what costs `n` of them at `at + n` times the time between two. */
interface Run {
  at: number
  units: number
}

/**
 * The places of one key's requests that wait at this node: when each of their units may go. They belong to the node, not to a request:
 * whoever comes first there takes the first one.
 */
export class Places {
  /** Units that wait, and what the first request among them costs. */
  wanted = 0
  first = 0
  /** Units that the store is being asked for. */
  asked = 0
  /** When it was asked last. */
  askedAt: number = Number.NEGATIVE_INFINITY
  /** Units that have a place. */
  units = 0
  #runs: Run[] = []
  #roundTrip = 0
  /** Milliseconds for which others went first, when places came last. */
  #others = 0

  /**
   * Units to ask for now.
   *
   * @param each milliseconds between two places
   */
  missing(now: number, each: number): number {
    const missing = this.wanted - this.units
    if (this.asked > 0 || !(missing > 0)) return 0
    const lead = LEAST_LEAD + 2 * this.#roundTrip
    // The next ones are there before the last of these is used: else the pace would not be used up.
    if (this.units >= this.first && this.#last(each) - now > lead + each) return 0
    const together = Math.floor(TOGETHER / each) - this.units
    return Math.min(
      missing,
      Math.max(this.first - this.units, together, Math.ceil(PART * this.wanted), Math.ceil((lead - this.#others) / each)),
    )
  }

  /** The store has been asked for so many units. */
  ask(units: number, now: number): void {
    this.asked = units
    this.askedAt = now
  }

  /**
   * What was asked for is there.
   *
   * @param at as of a `Run`, on the monotonic clock
   */
  answer(at: number, now: number): void {
    const trip = now - this.askedAt
    this.#roundTrip = this.#roundTrip === 0 ? trip : smooth(this.#roundTrip, trip)
    this.#others = Math.max(0, at - now)
    this.#runs.push({ at, units: this.asked })
    this.units += this.asked
    this.asked = 0
  }

  /** When so many units may go that have a place. */
  goesAt(units: number, each: number): number {
    let left = units
    for (const run of this.#runs) {
      if (left <= run.units + this.units * ROUNDING) return run.at + left * each
      left -= run.units
    }
    return Number.POSITIVE_INFINITY
  }

  /** Takes the first ones. */
  take(units: number, each: number): void {
    let left = units
    for (let run = this.#runs[0]; run !== undefined && left > 0; run = this.#runs[0]) {
      const used = Math.min(left, run.units)
      left -= used
      run.at += used * each
      run.units -= used
      if (run.units > units * ROUNDING) break
      this.#runs.shift()
    }
    this.units = this.#runs.length === 0 ? 0 : this.units - units
  }

  /** Leaves out the last ones that nobody waits for any more; returns how many. */
  cut(): number {
    const over = this.units - this.wanted
    if (!(over > this.units * ROUNDING)) return 0
    let left = over
    for (let run = this.#runs.at(-1); run !== undefined && left > 0; run = this.#runs.at(-1)) {
      const cut = Math.min(left, run.units)
      left -= cut
      run.units -= cut
      if (run.units > over * ROUNDING) break
      this.#runs.pop()
    }
    this.units = this.#runs.length === 0 ? 0 : this.units - over
    return over
  }

  #last(each: number): number {
    const last = this.#runs.at(-1)
    return last === undefined ? Number.NEGATIVE_INFINITY : last.at + last.units * each
  }
}
