import { ROUNDING } from '../../algorithms/bucket/step.ts'
import { smooth } from '../estimate.ts'

/**
 * A process reserves this part of its waiting units at a time. Because all do so, each gets its part of the pace in every round, and none
 * has to wait until the long queue of another one is empty.
 */
const PART = 1 / 8
/**
 * Reservations within these milliseconds are requested together: a sync for each would cost more than it spreads, and a cancelled request
 * delays the others by no more than that.
 */
const TOGETHER = 40
/** Times are whole milliseconds, and a sync waits so long before the next one. */
const LEAST_LEAD = 5

/** Units that may go one after another, evenly: a request of `n` units may go at `at + n` times the time between two. */
interface Run {
  at: number
  units: number
}

/**
 * The reservations of one key's waiting requests in this process: when each of their units may go. They belong to the process, and its
 * requests use them in their order.
 */
export class Places {
  /** Units that wait, and the cost of the first request among them. */
  wanted = 0
  first = 0
  /** Units that are requested from the store. */
  asked = 0
  /** When they were last requested. */
  askedAt: number = Number.NEGATIVE_INFINITY
  /** Units with a reservation. */
  units = 0
  #runs: Run[] = []
  #roundTrip = 0
  /** Milliseconds for which others went first, at the last answer. */
  #others = 0

  /**
   * Units to request now.
   *
   * @param each milliseconds between two units
   */
  missing(now: number, each: number): number {
    const missing = this.wanted - this.units
    if (this.asked > 0 || !(missing > 0)) return 0
    const lead = LEAST_LEAD + 2 * this.#roundTrip
    // The next ones must arrive before the last of these is used: otherwise some of the pace stays unused.
    if (this.units >= this.first && this.#last(each) - now > lead + each) return 0
    const together = Math.floor(TOGETHER / each) - this.units
    return Math.min(
      missing,
      Math.max(this.first - this.units, together, Math.ceil(PART * this.wanted), Math.ceil((lead - this.#others) / each)),
    )
  }

  /** So many units were requested from the store. */
  ask(units: number, now: number): void {
    this.asked = units
    this.askedAt = now
  }

  /**
   * The store has reserved the requested units.
   *
   * @param at as in a `Run`, on the monotonic clock
   */
  answer(at: number, now: number): void {
    const trip = now - this.askedAt
    this.#roundTrip = this.#roundTrip === 0 ? trip : smooth(this.#roundTrip, trip)
    this.#others = Math.max(0, at - now)
    this.#runs.push({ at, units: this.asked })
    this.units += this.asked
    this.asked = 0
  }

  /** When this many reserved units may go. */
  goesAt(units: number, each: number): number {
    let left = units
    for (const run of this.#runs) {
      if (left <= run.units + this.units * ROUNDING) return run.at + left * each
      left -= run.units
    }
    return Number.POSITIVE_INFINITY
  }

  /** Uses the first ones. */
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

  /** Removes the last ones that no request needs any more; returns how many. */
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
