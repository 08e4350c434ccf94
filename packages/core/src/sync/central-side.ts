import type { CentralLink } from '../central/link.ts'
import type { CentralStore } from '../central/meter.ts'
import type { CentralAlgorithm, Exchange, Exchanging, MakeShared, SharedForm } from '../counting/site.ts'
import type { Asking, AskingHost } from '../decide/asking.ts'
import { WeirError } from '../report/errors.ts'
import { reasonOf } from '../report/show.ts'
import type { Question, StoreConnection, Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { Retried } from '../time/retried.ts'

/** Milliseconds between two checks whether the store has all reports. */
const LOOK_AGAIN = 5

/**
 * The policies of one process whose requests the store decides. The code that sends these requests is loaded with the first such
 * policy, so that other applications don't carry it.
 */
export class CentralSide implements CentralStore {
  readonly #clock: Clock
  readonly #exchange: () => Exchange
  readonly #warn: (error: WeirError) => void
  /** The code that sends requests to the store, once it is loaded. */
  #code: typeof import('../central/index.ts') | undefined
  /** The link of the connection. Undefined without one. */
  link: CentralLink | undefined
  #connection: StoreConnection | undefined
  #opening: Retried<object> | undefined
  readonly #meters: () => readonly Exchanging[]

  /** @param meters the meters of all policies of the throttlers that have started */
  constructor(clock: Clock, exchange: () => Exchange, warn: (error: WeirError) => void, meters: () => readonly Exchanging[]) {
    this.#clock = clock
    this.#exchange = exchange
    this.#warn = warn
    this.#meters = meters
  }

  /** As `StoreExchange.central`. */
  form(algorithm: CentralAlgorithm): SharedForm {
    const make: MakeShared = (site, _exchange, before) => {
      const { CentralMeter } = this.#code as typeof import('../central/index.ts')
      const made = new CentralMeter(algorithm, site, this.#exchange(), this, before)
      this.#makeLink()
      return made
    }
    const load = async (): Promise<MakeShared> => {
      this.#code = await import('../central/index.ts')
      return make
    }
    return (site, exchange) => (this.#code === undefined ? load : make(site, exchange))
  }

  /** Returns the object that decides requests. Until the code is loaded, the stand-in meters decide. */
  decisions(host: AskingHost): Asking {
    let made: Asking | undefined
    let by: CentralLink | undefined
    return {
      decide: (keys, costs, places, applied, opens) => {
        // Closing another throttler on the same connection removes the link.
        const link = this.#makeLink()
        if (this.#code === undefined || link === undefined) return host.decide(keys, costs, true, places, applied)
        if (made === undefined || by !== link) made = new this.#code.CentralDecisions(host, link)
        by = link
        return made.decide(keys, costs, places, applied, opens)
      },
    }
  }

  open(connection: StoreConnection): void {
    this.#connection = connection
    if (this.link !== undefined) this.#open(this.link, connection)
  }

  /** Returns whether the store has all reports of this moment within `timeout` milliseconds. */
  async flush(timeout: number): Promise<boolean> {
    const { link } = this
    if (link === undefined) return true
    const end = this.#clock.monotonic() + timeout
    for (const settled = link.flush(); !settled(); ) {
      const left = end - this.#clock.monotonic()
      // A closed link sends nothing.
      if (left <= 0 || this.link !== link) return false
      await new Promise<void>((resolve) => {
        this.#clock.setTimeout(resolve, Math.min(LOOK_AGAIN, left))
      })
    }
    return true
  }

  /** The store has answered a sync. */
  answered(): void {
    this.link?.answered()
  }

  close(): void {
    this.#opening?.stop()
    this.#opening = undefined
    this.link?.close()
    this.link = undefined
    this.#connection = undefined
  }

  get alone(): boolean {
    return this.link?.alone ?? this.#exchange().storeDown
  }

  tell(question: Question): void {
    this.#makeLink()?.tell(question)
  }

  async look(question: Question, storeTimeout: number): Promise<Verdict | undefined> {
    return await this.#makeLink()?.look(question, storeTimeout)
  }

  /** Undefined until it is loaded. */
  #makeLink(): CentralLink | undefined {
    if (this.link !== undefined || this.#code === undefined) return this.link
    const { CentralLink, CentralMeter } = this.#code
    this.link = new CentralLink({
      clock: this.#clock,
      exchange: this.#exchange(),
      warn: (code, message) => this.#warn(new WeirError(code, message)),
      returned: (now, most) =>
        this.#meters().reduce((told, meter) => told + (meter instanceof CentralMeter ? meter.tellUntold(now, most - told) : 0), 0),
    })
    if (this.#connection !== undefined) this.#open(this.link, this.#connection)
    return this.link
  }

  #open(link: CentralLink, connection: StoreConnection): void {
    this.#opening?.stop()
    this.#opening = new Retried(
      async () => {
        const decider = await connection.decider?.()
        if (decider !== undefined && this.link === link) link.open(decider)
        return link
      },
      this.#clock,
      (cause, first) => {
        if (!first) return
        const what = `The store can't decide requests yet (${reasonOf(cause)})`
        const then = 'Weir tries again. Until it succeeds, policies with coordination "central" use their "failMode". Check the store.'
        this.#warn(new WeirError('WEIR_NOT_LOADED', `${what}. ${then}`, { cause }))
      },
    )
    void this.#opening.load()
  }
}
