import type { Asking, AskingHost, Keys, Opening } from '../decide/asking.ts'
import { isDecidedByStore, takesQuotaAhead } from '../decide/coordination.ts'
import type { Decision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { ReserveAll } from '../decide/reserve-all.ts'
import { LONGEST_TIMER } from '../time/alarm.ts'
import type { LaterMeters } from './later-meters.ts'

let Waiting: typeof ReserveAll | undefined

/** Loads the code that lets requests wait. */
export async function loadWaiting(): Promise<void> {
  Waiting = (await import('../decide/reserve-all.ts')).ReserveAll
}

/** Decides requests that may have to wait: for units of the store, for its decision, or until the code for it is loaded. */
export class Waits implements Asking {
  readonly #host: AskingHost
  readonly #later: Pick<LaterMeters, 'loading' | 'overdue'>
  readonly #centrally: Asking
  #waiting: ReserveAll | undefined
  #limiters: readonly Limiter[] | undefined
  #central = false
  #leases = false

  constructor(host: AskingHost, centrally: Asking, later: Pick<LaterMeters, 'loading' | 'overdue'>) {
    this.#host = host
    this.#centrally = centrally
    this.#later = later
  }

  decide(keys: Keys, costs: readonly number[], places: readonly number[], applied: number, opens?: Opening): Decision | Promise<Decision> {
    const { loading } = this.#later
    if (loading === undefined) return this.#decide(keys, costs, places, applied, opens)
    // Callers reuse their lists, so this request needs copies.
    const own = [[...keys], [...costs], places.slice(0, applied)] as const
    const limitAgain = this.#host.noteLimits(own[0])
    return this.#within(loading, own[2]).then(() => {
      limitAgain()
      return this.#decide(...own, applied, opens)
    })
  }

  /** Waits for the end of an attempt to load, at most the shortest `storeTimeout`. After that the local meters decide by `failMode`. */
  #within(loading: Promise<unknown>, places: readonly number[]): Promise<void> {
    const { clock, limiters } = this.#host
    const waiting = places.map((place) => limiters[place] as Limiter).filter(({ policy }) => policy.storeTimeout > 0)
    const storeTimeout = Math.min(...waiting.map(({ policy }) => policy.storeTimeout), LONGEST_TIMER)
    return new Promise((resolve) => {
      const overdue = (): void => {
        this.#later.overdue(waiting)
        resolve()
      }
      const timer = clock.setTimeout(overdue, storeTimeout)
      void loading.then(() => {
        clock.clearTimeout(timer)
        resolve()
      })
    })
  }

  #decide(
    keys: Keys,
    costs: readonly number[],
    places: readonly number[],
    applied: number,
    opens: Opening | undefined,
  ): Decision | Promise<Decision> {
    const host = this.#host
    if (this.#limiters !== host.limiters) this.#adopt(host.limiters)
    if (this.#leases && Waiting !== undefined) this.#waiting ??= new Waiting(host)
    const central = this.#central ? this.#centrally : undefined
    const waiting = this.#waiting
    const asking = waiting?.needed(keys, costs, places, applied) ?? []
    if (waiting !== undefined && asking.length > 0) return waiting.decide([...keys], [...costs], asking, central, opens)
    return central === undefined ? host.decide(keys, costs, true, places, applied) : central.decide(keys, costs, places, applied, opens)
  }

  #adopt(limiters: readonly Limiter[]): void {
    this.#limiters = limiters
    this.#central = limiters.some(({ policy }) => isDecidedByStore(policy))
    this.#leases = limiters.some(({ policy }) => takesQuotaAhead(policy))
  }
}
