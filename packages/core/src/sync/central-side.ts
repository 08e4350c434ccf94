import type { Meter } from '../algorithms/meter.ts'
import type { CentralAlgorithm, Exchange, Exchanging, SharedSite } from '../algorithms/shared/site.ts'
import type { CentralLink } from '../central/link.ts'
import type { CentralMeter, CentralStore } from '../central/meter.ts'
import type { Asking, AskingHost } from '../decide/asking.ts'
import { WeirError } from '../report/errors.ts'
import type { Question, StoreConnection, Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'

type MakeMeter = (algorithm: CentralAlgorithm, site: SharedSite, before?: Meter) => CentralMeter

/**
 * The policies of one node whose requests the store decides about. What asks the store is loaded with the first of them, so that
 * other applications don't carry it.
 */
export class CentralSide implements CentralStore {
  readonly #clock: Clock
  readonly #exchange: () => Exchange
  readonly #warn: (error: WeirError) => void
  readonly #welcome: () => void
  #loading: Promise<void> | undefined
  #decide: ((host: AskingHost, link: CentralLink) => Asking) | undefined
  #link: CentralLink | undefined
  #connection: StoreConnection | undefined
  #meters: readonly CentralMeter[] = []
  #make: MakeMeter | undefined
  /** What is done once all is loaded. */
  #waiting: (() => void)[] = []

  /** @param welcome asks the store for all blocks again, as a new meter knows of none */
  constructor(clock: Clock, exchange: () => Exchange, warn: (error: WeirError) => void, welcome: () => void) {
    this.#clock = clock
    this.#exchange = exchange
    this.#warn = warn
    this.#welcome = welcome
  }

  /** While what asks the store is being loaded. */
  get loading(): Promise<void> | undefined {
    return this.#link === undefined ? this.#loading : undefined
  }

  /** As `StoreExchange.central`. */
  meter(algorithm: CentralAlgorithm, site: SharedSite, become: (meter: Exchanging) => void): { meter: Meter; loaded: boolean } {
    const make = this.#make
    if (make !== undefined) return { meter: this.#add(make(algorithm, site)), loaded: true }
    const exchange = this.#exchange()
    const before = algorithm.local(site, Object.create(exchange, { localTime: { value: exchange.time } }) as Exchange)
    this.#waiting.push(() => {
      const made = this.#add((this.#make as MakeMeter)(algorithm, site, before))
      const now = this.#clock.monotonic()
      if (exchange.time.measured) made.adoptTime(now)
      // What was blocked by hand in the meantime.
      for (const [slot, { until, manual }] of site.blocks) if (manual) made.tellBlock(site.idOf(slot), 'set', until - now, until)
      become(made)
      this.#welcome()
    })
    void this.#load()
    return { meter: before, loaded: false }
  }

  #add(made: CentralMeter): CentralMeter {
    this.#meters = [...this.#meters, made]
    return made
  }

  decisions(host: AskingHost): Asking {
    let made: Asking | undefined
    let by: CentralLink | undefined
    const asking: Asking = {
      decide: (keys, costs, places, applied) => {
        if (made !== undefined && by === this.#link) return made.decide(keys, costs, places, applied)
        if (this.#link !== undefined && this.#decide !== undefined) {
          by = this.#link
          made = this.#decide(host, by)
          return made.decide(keys, costs, places, applied)
        }
        const own = [[...keys], [...costs], places.slice(0, applied)] as const
        return this.#load().then(() => asking.decide(...own, applied))
      },
    }
    return asking
  }

  open(connection: StoreConnection): void {
    this.#connection = connection
    if (this.#link !== undefined) this.#open(this.#link)
  }

  /** The store has answered an exchange. */
  answered(): void {
    this.#link?.answered()
  }

  retire(meters: readonly Exchanging[]): void {
    if (this.#meters.length > 0) this.#meters = this.#meters.filter((meter) => !meters.includes(meter))
  }

  close(): void {
    this.#link?.close()
    this.#link = undefined
    this.#loading = undefined
    this.#connection = undefined
  }

  get alone(): boolean {
    return this.#link?.alone ?? this.#exchange().degraded
  }

  tell(question: Question): void {
    if (this.#link !== undefined) this.#link.tell(question)
    else void this.#load().then(() => this.#link?.tell(question))
  }

  async look(question: Question, deadline: number): Promise<Verdict | undefined> {
    await this.#load()
    return await this.#link?.look(question, deadline)
  }

  #load(): Promise<void> {
    this.#loading ??= import('../central/index.ts').then(({ CentralDecisions, CentralLink, CentralMeter }) => {
      this.#make = (algorithm, site, before) => new CentralMeter(algorithm, site, this.#exchange(), this, before)
      this.#decide = (host, link) => new CentralDecisions(host, link)
      this.#link = new CentralLink({
        clock: this.#clock,
        exchange: this.#exchange(),
        warn: (code, message) => this.#warn(new WeirError(code, message)),
        returned: (now) => {
          for (const meter of this.#meters) meter.tellUntold(now)
        },
      })
      this.#open(this.#link)
      for (const run of this.#waiting.splice(0)) run()
    })
    return this.#loading
  }

  #open(link: CentralLink): void {
    // A store that breaks its contract is one that does not answer.
    void Promise.resolve()
      .then(() => this.#connection?.decider?.())
      .then(
        (decider) => {
          if (decider !== undefined) link.open(decider)
        },
        () => {},
      )
  }
}
