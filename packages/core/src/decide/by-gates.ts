import { UNDECIDED, USED_UP } from '../algorithms/meter.ts'
import { isCost } from '../keys/units.ts'
import { LOCAL, type SourceIndex } from '../report/stats.ts'
import type { Keys } from './asking.ts'
import { type Levels, LevelsDecision } from './levels.ts'
import { type Limiter, NO_SLOT } from './limiter.ts'
import { ALL_KEY } from './policy.ts'

/** Decides by the gates of several policies alone. That is enough for most requests to existing keys. */
export class ByGates {
  readonly #limiters: readonly Limiter[]
  readonly #shared: readonly boolean[]
  readonly #costs: readonly number[]
  /** The slot of a request's key in each limiter, and its mark before the request was counted. */
  readonly #found: number[]
  readonly #before: Float64Array
  /** The cells and keys of the last request, by the number of policies. Decisions refer to them. */
  readonly #levels: (Levels | undefined)[]

  /**
   * @param shared for each policy, whether all requests share one key
   * @param costs for each policy, the checked cost of a request without its own
   */
  constructor(limiters: readonly Limiter[], shared: readonly boolean[], costs: readonly number[]) {
    this.#limiters = limiters
    this.#shared = shared
    this.#costs = costs
    this.#found = limiters.map(() => NO_SLOT)
    this.#before = new Float64Array(limiters.length)
    this.#levels = [undefined, ...limiters.map(() => undefined)]
  }

  /**
   * Decides at once if each policy's gate can decide. Each policy counts the request until one rejects it. Undefined if a gate can't
   * decide. Then nothing has changed. Nothing called here may start another decision meanwhile.
   */
  decide(
    keys: string | Keys,
    costs: readonly number[],
    places: readonly number[],
    applied: number,
    now: number,
  ): LevelsDecision | undefined {
    const limiters = this.#limiters
    const shared = this.#shared
    const found = this.#found
    const before = this.#before
    let levels = this.#levels[applied]
    const checked = costs === this.#costs
    let rejected = 0
    let counted = 0
    const numbers: number[] = new Array(3 * applied)
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const limiter = limiters[i] as Limiter
      const cost = costs[i] as number
      const key = typeof keys !== 'string' ? keys[i] : shared[i] === true ? ALL_KEY : keys
      const { meter } = limiter
      if (key === undefined || now >= meter.rollAt || (!checked && !isCost(cost))) return this.#untake(costs, places, counted)
      const slot = shared[i] === true ? limiter.findAgain(key) : limiter.table.find(key)
      if (slot < 0) return this.#untake(costs, places, counted)
      found[at] = slot
      before[at] = meter.mark(slot)
      const left = rejected === 0 ? meter.take(slot, cost, now) : UNDECIDED
      if (left >= 0) {
        counted++
        numbers[3 * at + 2] = cost
      } else if (rejected === 0 || !meter.fits(slot, cost, now)) {
        const source = left === USED_UP ? LOCAL : limiter.policy.dryRun ? -1 : meter.fullBy(slot, cost, now)
        if (source < 0) return this.#untake(costs, places, counted)
        rejected |= 1 << at
        numbers[3 * at + 2] = source
      }
      numbers[3 * at] = left >= 0 ? left : meter.remaining(slot, now)
      numbers[3 * at + 1] = meter.resetAfterMs(slot, now)
      if (levels !== undefined && levels.cells[at] !== limiter.cell) levels = undefined
    }
    if (rejected !== 0) this.#reject(costs, places, rejected, counted, now, numbers)
    levels ??= this.#levelsOf(places, applied)
    return new LevelsDecision(levels, typeof keys === 'string' ? keys : keysAt(keys, places, applied), numbers, rejected)
  }

  /** Reverts the units that `decide` has counted at the first `counted` policies. */
  #untake(costs: readonly number[], places: readonly number[], counted: number): undefined {
    for (let at = counted - 1; at >= 0; at--) {
      const i = places[at] as number
      const limiter = this.#limiters[i] as Limiter
      limiter.meter.untake(this.#found[at] as number, this.#before[at] as number, costs[i] as number)
    }
    return undefined
  }

  /**
   * Turns the numbers into a rejection without units. Each rejecting policy counts it by the source, which is stored in the place of its
   * amount. Policies behind the first rejecting one have counted nothing.
   */
  #reject(costs: readonly number[], places: readonly number[], rejected: number, counted: number, now: number, numbers: number[]): void {
    this.#untake(costs, places, counted)
    for (let at = 0; 3 * at < numbers.length; at++) {
      const i = places[at] as number
      const limiter = this.#limiters[i] as Limiter
      const slot = this.#found[at] as number
      if ((rejected & (1 << at)) !== 0) {
        limiter.countByLimit(slot, numbers[3 * at + 2] as SourceIndex)
        numbers[3 * at + 2] = limiter.meter.rollAt - now
        continue
      }
      if (at < counted) {
        numbers[3 * at] = limiter.meter.remaining(slot, now)
        numbers[3 * at + 1] = limiter.meter.resetAfterMs(slot, now)
      }
      numbers[3 * at + 2] = 0
    }
  }

  #levelsOf(places: readonly number[], applied: number): Levels {
    const here = places.slice(0, applied)
    const cells = here.map((i) => (this.#limiters[i] as Limiter).cell)
    const keys = here.map((i) => (this.#shared[i] === true ? ALL_KEY : undefined))
    return (this.#levels[applied] = { cells, keys })
  }
}

function keysAt(keys: Keys, places: readonly number[], applied: number): readonly string[] {
  const copy: string[] = new Array(applied)
  for (let at = 0; at < applied; at++) copy[at] = keys[places[at] as number] as string
  return copy
}
