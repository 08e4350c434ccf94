import type { ServerResponse } from 'node:http'
import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { cluster, snapshot } from '@weir/core/inspect'
import { Busiest } from './busiest.ts'
import { Candidates } from './candidates.ts'
import { Charts } from './charts.ts'
import { earlier } from './earlier.ts'
import type { KeyMemory } from './key-memory.ts'
import { LimitedKeys } from './limited.ts'
import { Log } from './log.ts'
import { modesOf } from './mode.ts'
import type { Hello, Series, View } from './protocol.ts'
import { Rates } from './rates.ts'
import { keySeries, nodeSeries, PolicySeries } from './series.ts'
import { settingsOf } from './settings.ts'
import { type Memory, makeView } from './view.ts'

const EVERY = 1_000
/** Milliseconds between two updates of the request history while no page is open. */
const REMEMBER = 5_000
/** Milliseconds. A process without a report by then may run another version. */
const SETTLED = 5_000
/** Milliseconds from a change to its update, so that a burst causes only one. */
const SOON = 150
/** Milliseconds for which the charts continue after the last page was closed, because it may be opened again. */
const LINGER = 5 * 60_000
/** Bytes. The stream of a page that reads too slowly is ended, and the page reconnects. */
const MOST_BUFFERED = 1 << 20
/** Milliseconds. A stream ends after this time, so that the rights of its client are checked again. */
const LONGEST = 10 * 60_000

/** A client that reads a stream, and its rights. */
interface Reader {
  /** Whether the client may block and unblock keys. */
  readonly actions: boolean
  /** Whether the client has signed in, so that it can sign out. */
  readonly signOut: boolean
  /** End of the right to read, in milliseconds since the Unix epoch. */
  readonly until: number
  readonly session: string | undefined
}

/** Server-sent events to all open pages: one view a second, and an earlier one after a change. */
export class Stream {
  readonly #throttler: Throttler<string, never>
  readonly #build: string
  readonly #memory: Memory
  readonly #series = new PolicySeries()
  #latest: View | undefined
  readonly #log: Log
  readonly #clients = new Map<ServerResponse, Reader>()
  #timer: NodeJS.Timeout | undefined
  #soon: NodeJS.Timeout | undefined
  #leftAt = 0
  /** Time when the first page was opened, in milliseconds since the Unix epoch. */
  #since = 0
  /** Updates the request history of this process while no page is open, because without a store there are no heartbeats to do it. */
  readonly #remembering: NodeJS.Timeout
  #sent = ''

  constructor(throttler: Throttler<string, never>, build: string, keys: KeyMemory) {
    this.#throttler = throttler
    this.#build = build
    this.#memory = {
      rates: new Rates(),
      charts: new Charts(throttler),
      limited: new LimitedKeys(),
      busiest: new Busiest(),
      candidates: new Candidates(),
      keys,
    }
    this.#remembering = setInterval(() => this.#remember(), REMEMBER).unref()
    this.#log = new Log(throttler, () => this.changed())
  }

  /** The newest view, while there are pages. */
  get view(): View | undefined {
    return this.#latest
  }

  /** The rates of a process, of a key in a policy, or of a policy. */
  series({
    node,
    policy = '',
    key,
  }: {
    readonly node?: string | undefined
    readonly policy?: string | undefined
    readonly key: string
  }): Series {
    if (node !== undefined) return nodeSeries(cluster(this.#throttler), node, Date.now())
    const { keys, limited } = this.#memory
    return key === '' ? this.#series.of(policy) : keySeries(keys, limited, policy, key)
  }

  get clients(): number {
    return this.#clients.size
  }

  /** @param response - of a client that is still there */
  add(response: ServerResponse, reader: Reader): void {
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      // With `no-transform` proxies don't compress, because compression would delay events.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
      'X-Content-Type-Options': 'nosniff',
      'Cross-Origin-Resource-Policy': 'same-origin',
    })
    this.#clients.set(response, { ...reader, until: Math.min(reader.until, Date.now() + LONGEST) })
    const gone = (): void => this.#forget(response)
    response.on('close', gone)
    // If the response waits behind others on its connection, it gets no event when the connection ends.
    if (response.socket === null) response.req.socket.once('close', gone)
    this.#remember()
    const before = earlier(cluster(this.#throttler), Date.now())
    const hello: Hello = { build: this.#build, history: this.#memory.charts.points, earlier: before, signOut: reader.signOut }
    response.write(`retry: 1000\nevent: hello\ndata: ${JSON.stringify(hello)}\n\n`)
    if (this.#timer === undefined) this.#since = Date.now()
    this.#timer ??= setInterval(() => this.#tick(), EVERY).unref()
    this.#send(this.#view())
  }

  /** Shows a change before the next second. */
  changed(): void {
    if (this.#clients.size === 0 || this.#soon !== undefined) return
    this.#soon = setTimeout(() => {
      this.#soon = undefined
      this.#send(this.#view())
    }, SOON).unref()
  }

  /** Ends the streams of a session that has ended. */
  end(session: string): void {
    for (const [response, reader] of this.#clients) if (reader.session === session) this.#end(response)
  }

  close(): void {
    clearInterval(this.#timer)
    clearInterval(this.#remembering)
    clearTimeout(this.#soon)
    this.#timer = undefined
    this.#soon = undefined
    this.#log.close()
    this.#memory.charts.close()
    for (const response of this.#clients.keys()) this.#end(response)
  }

  /** Removes the client first, because writing after the end is an error. If the client does not read, `end` would never finish. */
  #end(response: ServerResponse): void {
    this.#forget(response)
    if (response.writableLength > 0) response.destroy()
    else response.end()
  }

  #forget(response: ServerResponse): void {
    this.#clients.delete(response)
    this.#leftAt = Date.now()
  }

  #tick(): void {
    const now = Date.now()
    if (this.#clients.size === 0 && now - this.#leftAt > LINGER) {
      clearInterval(this.#timer)
      this.#timer = undefined
      this.#memory.charts.clear()
      this.#latest = undefined
      return
    }
    for (const [response, { until }] of this.#clients) if (now >= until) this.#end(response)
    const view = this.#view()
    const { charts, keys, limited } = this.#memory
    charts.add(view.point)
    for (const { policy, key, used } of view.top) keys.follow(policy, key, used, view.time)
    limited.follow(view.limited, view.time)
    this.#series.add(view)
    this.#send(view)
    this.#sendEarlier(view)
  }

  #remember(): void {
    const { requests, clock } = adapterOf(this.#throttler).inspected
    requests.tick(clock.monotonic())
  }

  /**
   * Sends the earlier history again when it has grown: some moments after the first page was opened, and at the end of each slot. Points
   * that were unknown get their values from it.
   */
  #sendEarlier({ time, point }: View): void {
    const nodes = cluster(this.#throttler)
    const slot = nodes[0]?.requests.history.slot ?? 1
    const sent = nodes
      .map(
        ({ node, ageMs, requests: { history } }) =>
          `${node} ${history.allowed.length} ${Math.round((time - ageMs - history.ended) / slot)}`,
      )
      .join()
    if (sent === this.#sent) return
    this.#sent = sent
    const slots = earlier(nodes, time)
    this.#write(`event: earlier\ndata: ${JSON.stringify(slots)}\n\n`)
    const filled = point[1] === null ? [] : this.#memory.charts.fill(slots, slot)
    if (filled.length > 0) this.#write(`event: filled\ndata: ${JSON.stringify(filled)}\n\n`)
  }

  #write(text: string): void {
    for (const response of this.#clients.keys()) if (response.writableLength <= MOST_BUFFERED) response.write(text)
  }

  #view(): View {
    const time = Date.now()
    const nodes = cluster(this.#throttler)
    this.#memory.rates.update(nodes, time)
    this.#log.report(nodes, time)
    this.#latest = makeView(snapshot(this.#throttler, { top: 25, blocked: 200 }), nodes, this.#memory, {
      time,
      log: this.#log.entries.map((entry) => ({ process: nodes[0]?.label ?? '', ...entry })),
      settled: time - this.#since > SETTLED,
      mode: modesOf(this.#throttler),
      settings: settingsOf(this.#throttler),
    })
    return this.#latest
  }

  #send(view: View): void {
    const texts = { read: '', act: '' }
    for (const [response, { actions }] of this.#clients) {
      const kind = actions ? 'act' : 'read'
      texts[kind] ||= `event: view\ndata: ${JSON.stringify({ ...view, actions })}\n\n`
      if (response.writableLength > MOST_BUFFERED) this.#end(response)
      else response.write(texts[kind])
    }
  }
}
