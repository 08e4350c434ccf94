import type { ServerResponse } from 'node:http'
import { Log } from './log.ts'
import type { Hello, Point, View } from './protocol.ts'
import { Rates } from './rates.ts'
import type { DashboardThrottler } from './source.ts'
import { makeView } from './view.ts'

const EVERY = 1_000
/** Something happened: shown this much later, so that a burst is shown once. */
const SOON = 150
/** Points of the charts: ten minutes. */
const KEPT = 600
/** So long after the last page was closed, the charts are still continued: it may be opened again. */
const LINGER = 5 * 60_000
/** A page that does not read fast enough is cut off; it comes back by itself. */
const MOST_BUFFERED = 1 << 20
/** A stream ends after this time, so that its reader is asked again who he is. */
const LONGEST = 10 * 60_000

/** Server-sent events to all open pages: one view a second, and sooner when something happens. */
export class Stream {
  readonly #throttler: DashboardThrottler
  readonly #build: string
  readonly #rates = new Rates()
  readonly #log: Log
  readonly #clients = new Map<ServerResponse, { readonly actions: boolean; readonly since: number }>()
  readonly #history: Point[] = []
  #timer: NodeJS.Timeout | undefined
  #soon: NodeJS.Timeout | undefined
  #leftAt = 0

  constructor(throttler: DashboardThrottler, build: string) {
    this.#throttler = throttler
    this.#build = build
    this.#log = new Log(throttler, () => this.changed())
  }

  get clients(): number {
    return this.#clients.size
  }

  /** @param actions - whether the reader may act */
  add(response: ServerResponse, actions: boolean): void {
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      // `no-transform`: compression would hold events back.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
      'X-Content-Type-Options': 'nosniff',
    })
    this.#clients.set(response, { actions, since: Date.now() })
    response.on('close', () => {
      this.#clients.delete(response)
      this.#leftAt = Date.now()
    })
    const hello: Hello = { build: this.#build, history: this.#history }
    response.write(`retry: 1000\nevent: hello\ndata: ${JSON.stringify(hello)}\n\n`)
    this.#timer ??= setInterval(() => this.#tick(), EVERY).unref()
    this.#send(this.#view())
  }

  /** Shows a change sooner than the next second. */
  changed(): void {
    if (this.#clients.size === 0 || this.#soon !== undefined) return
    this.#soon = setTimeout(() => {
      this.#soon = undefined
      this.#send(this.#view())
    }, SOON).unref()
  }

  close(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#soon)
    this.#timer = undefined
    this.#soon = undefined
    this.#log.close()
    for (const response of this.#clients.keys()) response.end()
  }

  #tick(): void {
    const now = Date.now()
    if (this.#clients.size === 0 && now - this.#leftAt > LINGER) {
      clearInterval(this.#timer)
      this.#timer = undefined
      this.#history.length = 0
      return
    }
    const view = this.#view()
    this.#history.push(view.point)
    if (this.#history.length > KEPT) this.#history.shift()
    this.#send(view)
    for (const [response, { since }] of this.#clients) if (now - since > LONGEST) response.end()
  }

  #view(): View {
    const time = Date.now()
    const nodes = this.#throttler.cluster()
    this.#rates.update(nodes, time)
    return makeView(this.#throttler.snapshot({ top: 25, blocked: 200 }), nodes, this.#rates, {
      time,
      actions: false,
      log: this.#log.entries,
    })
  }

  #send(view: View): void {
    const texts = { read: '', act: '' }
    for (const [response, { actions }] of this.#clients) {
      const kind = actions ? 'act' : 'read'
      texts[kind] ||= `event: view\ndata: ${JSON.stringify({ ...view, actions })}\n\n`
      if (response.writableLength > MOST_BUFFERED) response.destroy()
      else response.write(texts[kind])
    }
  }
}
