import type { Meter } from '../algorithms/meter.ts'
import type { CentralAlgorithm, Exchange, Exchanging, MakeShared, SharedForm, SharedSite } from '../algorithms/shared/site.ts'
import type { CentralLink } from '../central/link.ts'
import type { CentralMeter, CentralStore } from '../central/meter.ts'
import type { Asking, AskingHost } from '../decide/asking.ts'
import { WeirError } from '../report/errors.ts'
import type { Question, StoreConnection, Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'

type MakeCentral = (algorithm: CentralAlgorithm, site: SharedSite, before?: Meter) => CentralMeter
type Decides = (host: AskingHost, link: CentralLink) => Asking

/**
 * The policies of one node whose requests the store decides about. What asks the store is loaded with the first of them, so that
 * other applications don't carry it.
 */
export class CentralSide implements CentralStore {
  readonly #clock: Clock
  readonly #exchange: () => Exchange
  readonly #warn: (error: WeirError) => void
  #loading: Promise<void> | undefined
  #decide: Decides | undefined
  /** Once it is loaded. */
  link: CentralLink | undefined
  #connection: StoreConnection | undefined
  #meters: readonly CentralMeter[] = []
  #make: MakeCentral | undefined

  constructor(clock: Clock, exchange: () => Exchange, warn: (error: WeirError) => void) {
    this.#clock = clock
    this.#exchange = exchange
    this.#warn = warn
  }

  /** As `StoreExchange.central`. */
  form(algorithm: CentralAlgorithm): SharedForm {
    const make: MakeShared = (site, _exchange, before) => {
      const made = (this.#make as MakeCentral)(algorithm, site, before)
      this.#meters = [...this.#meters, made]
      return made
    }
    return (site, exchange) => (this.#make === undefined ? this.#load().then(() => make) : make(site, exchange))
  }

  /** Makes what decides about requests; all must be loaded. */
  decisions(host: AskingHost): Asking {
    let made: Asking | undefined
    let by: CentralLink | undefined
    const now = (): Asking => {
      if (made !== undefined && by === this.link) return made
      by = this.link as CentralLink
      made = (this.#decide as Decides)(host, by)
      return made
    }
    return {
      // A throttler that has been closed, and others that shared its connection, load again.
      decide: (keys, costs, places, applied) =>
        this.link === undefined
          ? this.#load().then(() => now().decide(keys, costs, places, applied))
          : now().decide(keys, costs, places, applied),
    }
  }

  open(connection: StoreConnection): void {
    this.#connection = connection
    if (this.link !== undefined) this.#open(this.link)
  }

  /** The store has answered an exchange. */
  answered(): void {
    this.link?.answered()
  }

  retire(meters: readonly Exchanging[]): void {
    if (this.#meters.length > 0) this.#meters = this.#meters.filter((meter) => !meters.includes(meter))
  }

  close(): void {
    this.link?.close()
    this.link = undefined
    this.#loading = undefined
    this.#connection = undefined
  }

  get alone(): boolean {
    return this.link?.alone ?? this.#exchange().degraded
  }

  tell(question: Question): void {
    if (this.link !== undefined) this.link.tell(question)
    else this.#load().then(() => this.link?.tell(question), IGNORED)
  }

  async look(question: Question, deadline: number): Promise<Verdict | undefined> {
    await this.#load()
    return await this.link?.look(question, deadline)
  }

  #load(): Promise<void> {
    this.#loading ??= import('../central/index.ts').then(({ CentralDecisions, CentralLink, CentralMeter }) => {
      this.#make = (algorithm, site, before) => new CentralMeter(algorithm, site, this.#exchange(), this, before)
      this.#decide = (host, link) => new CentralDecisions(host, link)
      this.link = new CentralLink({
        clock: this.#clock,
        exchange: this.#exchange(),
        warn: (code, message) => this.#warn(new WeirError(code, message)),
        returned: (now, most) => this.#meters.reduce((told, meter) => told + meter.tellUntold(now, most - told), 0),
      })
      this.#open(this.link)
    })
    return this.#loading
  }

  #open(link: CentralLink): void {
    // A store that breaks its contract is one that does not answer.
    void Promise.resolve()
      .then(() => this.#connection?.decider?.())
      .then((decider) => {
        if (decider !== undefined) link.open(decider)
      }, IGNORED)
  }
}

const IGNORED = (): void => {}
