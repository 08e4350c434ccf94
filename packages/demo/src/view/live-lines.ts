import { ABUSER } from '../traffic/population.ts'
import type { IntervalTally } from '../traffic/tally.ts'
import { gatewaysText, ratesText, timedLines } from './cluster-frame.ts'
import { count, safeText, seconds } from './format.ts'
import { type LiveView, NOBODY } from './live-frame.ts'
import type { Screen } from './screen.ts'

/** Milliseconds from an interval's end until its line is printed, because the last answers are still in flight. */
const SETTLED = 200

/** Output without a terminal: three lines for each finished interval, and for each event. */
export class Lines {
  readonly #timer: NodeJS.Timeout | undefined
  readonly #screen: Screen
  readonly #view: () => LiveView
  readonly #start: number
  #events = 0
  #intervals = 0
  /** Clients that were limited in the current interval, with their longest remaining time. */
  #limited = new Map<string, number>()

  /** @param start start of the traffic, milliseconds since the epoch */
  constructor(screen: Screen, view: () => LiveView, start: number) {
    this.#screen = screen
    this.#view = view
    this.#start = start
    if (screen.mode !== 'lines') return
    const { interval } = view()
    screen.line(`Three lines per interval of ${seconds(interval)}. Gateways: requests allowed+rejected so far.`)
    this.#timer = setInterval(() => this.#print(SETTLED), 100)
  }

  stop(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#print(Number.NEGATIVE_INFINITY)
  }

  #print(settled: number): void {
    const view = this.#view()
    for (const event of view.events.slice(this.#events)) this.#screen.line(event)
    this.#events = view.events.length
    for (const { key, left } of view.status.limited) this.#limited.set(key, Math.max(left, this.#limited.get(key) ?? 0))
    for (const finished of view.past.slice(this.#intervals)) {
      const end = (finished.ordinal + 1) * view.interval
      if (Date.now() - end < settled) break
      this.#screen.line(intervalLine(view, finished, end - this.#start, this.#limited))
      this.#limited = new Map()
      this.#intervals++
    }
  }
}

/**
 * @param at end of the interval, milliseconds since the start of the traffic
 * @param limited clients that were limited in it, with their longest remaining time in milliseconds
 */
export function intervalLine(view: LiveView, finished: IntervalTally, at: number, limited: ReadonlyMap<string, number>): string {
  const mallory = finished.clients.get(ABUSER) ?? NOBODY
  const names = [...limited].slice(0, 1).map(([key, left]) => `${safeText(key, 16)} for ${seconds(left)}`)
  const more = limited.size > 1 ? ` and ${limited.size - 1} more` : ''
  return timedLines(
    seconds(at),
    [
      `interval ${count(finished.total.allowed)} of ${count(view.globalLimit)}, rejected ${count(finished.total.rejected)}`,
      `${ABUSER} ${count(mallory.allowed)} of ${count(view.limit)}`,
    ],
    [gatewaysText(view), ratesText(view)],
    [`${view.status.nodes} processes`, `limited ${names.join(', ') || 'no client'}${more}`],
  )
}
