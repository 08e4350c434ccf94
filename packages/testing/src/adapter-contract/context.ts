import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as openRequest,
  type RequestOptions,
  type Server,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Decision, PolicyOptions, Store, Throttler, WeirError } from '@weir/core'
import { type ManualClock, manualClock } from '../time/manual-clock.ts'
import { Work } from './work.ts'

/** The members of a throttler that the cases use, whatever its requests are. */
export interface AdapterThrottler extends Pick<Throttler, 'on' | 'block' | 'unblock' | 'reset' | 'usage' | 'waiting' | 'close'> {
  peek(key: string): Decision
  update(policies: readonly PolicyOptions[]): void
}

/** A running application. */
export interface AdapterServer {
  /** Listening on a free port of the loopback address. */
  readonly server: Server
  /** The throttlers behind what was mounted, in order. */
  readonly throttlers: readonly AdapterThrottler[]
  close(): Promise<void>
}

/** How a proxy that the framework trusts is connected. */
export type TrustedProxy = 'loopback' | 'unix'

/** Settings of an application beside the adapter's options. */
export interface AdapterServerOptions {
  /** Delays the answer of `GET /work` until its promise resolves. */
  readonly work: () => Promise<void>
  /** Serve HTTP/2 without TLS. */
  readonly http2: boolean
  /**
   * Trusts one proxy, as the adapter's documentation shows it. Set only if the adapter has `proxies`.
   * - `'loopback'`: the proxy connects from a loopback address.
   * - `'unix'`: the proxy connects over a Unix socket.
   *
   * @default none
   */
  readonly proxy?: TrustedProxy
  /**
   * Sets limits of the route `GET /`. Set only if the adapter has `ownLimits`.
   *
   * @default none
   */
  readonly own?: object
}

/** How to build an application with an adapter in it. `Req` is what the framework's functions get as the request. */
export interface AdapterUnderTest<Req> {
  /** Whether the adapter, mounted for the whole application, knows the pattern of a route or only the path. */
  readonly routes: 'pattern' | 'path'
  /** Whether the framework reports to the adapter that a handler has ended. */
  readonly handlerEnd: boolean
  /** Whether the framework serves HTTP/2. */
  readonly http2: boolean
  /** Whether `start` can have the framework trust a proxy. */
  readonly proxies?: boolean
  /** Whether routes can have limits of their own in place of what the adapter is mounted with. */
  readonly ownLimits?: boolean
  /**
   * Starts an application that throttles every request, before these routes:
   *
   * | route | answer |
   * |---|---|
   * | `GET /` | `hello` |
   * | `GET /context` | the decision as JSON: `{ "allowed", "remaining", "policy" }`, or `null` without one |
   * | `GET /users/:id` | `user` |
   * | `GET /stream` | `one`, `two`, `three` in three pieces |
   * | `GET /slow` | the headers and a piece, and then nothing until the client goes away |
   * | `GET` and `POST /status/:code` | that status and the text `done` |
   * | `GET /bytes/:count` | so many bytes; when they are sent, the first throttler charges the request a unit for each |
   * | `GET /busy/:milliseconds` | `done`, so much later; when it is sent, the first throttler charges a unit for each millisecond that it took |
   * | `GET /work` | `done`, after `await work()` |
   * | `GET /peek` | the third decision of three that the adapter's `peek` makes about this request, as JSON: `{ "allowed", "remaining", "reason", "dryRun" }`, or `null` |
   * | `GET /throw` | throws the framework's error with status 418 |
   *
   * and the framework's own 404 for all else.
   *
   * @param inputs what the adapter is mounted with, once for each, in order
   */
  start(inputs: readonly object[], options: AdapterServerOptions): Promise<AdapterServer>
  /** A header of the framework's request. */
  header(request: Req, name: string): string | undefined
  /** The `handler` option that answers with a text. */
  answering(text: string): unknown
  /** Writes a piece of an answer at once, past the framework where it must be; from what `handler` is called with. */
  begun(args: readonly unknown[], text: string, last?: boolean): void
  /** The status of the response, from what `requestWasSuccessful` is called with. */
  status(args: readonly unknown[]): number
}

export type Need = 'store' | 'clock' | 'paths' | 'patterns' | 'proxies' | 'ownLimits' | 'handlerEnd' | 'http2'

/** One behaviour of the adapter contract. */
export interface AdapterCase {
  readonly title: string
  /**
   * Requirements of a case: a store, a clock that it moves (so no store), an adapter that knows paths, patterns, proxies or limits of
   * routes, or a framework that reports the ends of handlers or serves HTTP/2.
   */
  readonly needs?: Need | `${Need}, ${Need}`
  run(context: AdapterContext): Promise<void>
}

/** An answer, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A client of one application. */
export class AdapterClient {
  readonly throttlers: readonly AdapterThrottler[]
  readonly warnings: WeirError[] = []
  readonly port: number
  readonly #server: Server

  constructor({ server, throttlers }: AdapterServer) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    this.throttlers = throttlers
    for (const throttler of throttlers) throttler.on('warning', ({ error }) => this.warnings.push(error))
  }

  /** Sends a request. The path goes out as it stands, valid or not. */
  send(path: string, options: RequestOptions = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.open(path, options)
        .on('error', reject)
        .on('response', (response: IncomingMessage) => {
          let body = ''
          response.setEncoding('utf8')
          response.on('data', (piece: string) => {
            body += piece
          })
          response.on('error', reject)
          response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
        })
        .end()
    })
  }

  /** How many connections the server has. */
  connections(): Promise<number> {
    return new Promise((resolve, reject) => this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
  }

  /** The statuses of several requests, one after the other. */
  async statuses(paths: readonly string[], options: RequestOptions = {}): Promise<number[]> {
    const statuses: number[] = []
    for (const path of paths) statuses.push((await this.send(path, options)).status)
    return statuses
  }

  /** Has the application listen on a Unix socket too, as behind a proxy on its machine. Returns the options of requests over it. */
  async overUnixSocket(): Promise<{ readonly options: RequestOptions; close(): void }> {
    const folder = mkdtempSync(join(tmpdir(), 'weir-'))
    const socketPath = join(folder, 'socket')
    const server = createServer((...exchange) => void this.#server.emit('request', ...exchange)).listen(socketPath)
    await once(server, 'listening')
    const close = (): void => {
      server.close()
      rmSync(folder, { recursive: true })
    }
    return { options: { host: null, port: null, socketPath }, close }
  }

  /** A request that the caller reads, and may break off. */
  open(path: string, options: RequestOptions = {}): ReturnType<typeof openRequest> {
    return openRequest({ host: '127.0.0.1', port: this.port, path, agent: false, ...options })
  }
}

/** The surroundings of a case. */
export class AdapterContext {
  readonly adapter: AdapterUnderTest<unknown>
  readonly clock: ManualClock = manualClock()
  readonly work: Work = new Work()
  readonly #store: Store | undefined
  readonly #servers: AdapterServer[] = []

  constructor(adapter: AdapterUnderTest<unknown>, store: Store | undefined) {
    this.adapter = adapter
    this.#store = store
  }

  /** The option that every throttler of a case has: its store, or its clock. */
  get base(): object {
    return this.#store === undefined ? { clock: this.clock } : { store: this.#store }
  }

  /** Whether `pass` waits in real time, as a store's clock can't be moved. */
  get realTime(): boolean {
    return this.#store !== undefined
  }

  /** One policy for each route whose interval does not end while a case runs. */
  limit(limit: number): { key: 'route'; limit: number; interval: number } {
    return { key: 'route', limit, interval: 365 * 24 * 3600 * 1000 }
  }

  /** An application with the adapter, given options without a clock or store. */
  start(options: object, server?: Partial<AdapterServerOptions>): Promise<AdapterClient> {
    return this.startWith([{ ...this.base, ...options }], server)
  }

  /** An application in which the adapter is mounted several times, each time with what is given and nothing more. */
  async startWith(inputs: readonly object[], server: Partial<AdapterServerOptions> = {}): Promise<AdapterClient> {
    const started = await this.adapter.start(inputs, { work: this.work.run, http2: false, ...server })
    this.#servers.push(started)
    return new AdapterClient(started)
  }

  /** Lets time pass: the clock's where the cases move it, or else real time. */
  async pass(milliseconds: number): Promise<void> {
    if (this.#store === undefined) await this.clock.advance(milliseconds)
    else await new Promise((resolve) => setTimeout(resolve, milliseconds))
  }

  /** The option function that reads a header of the framework's request. */
  readHeader(name: string): (request: unknown) => string | undefined {
    return (request) => this.adapter.header(request, name)
  }

  async close(): Promise<void> {
    this.work.end()
    for (const { close, throttlers } of this.#servers) {
      await close()
      await Promise.all(throttlers.map((throttler) => throttler.close()))
    }
  }
}

/** Waits until a condition holds: not long, but a busy machine may stand still for seconds. */
export async function eventually(condition: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const end = performance.now() + 15_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`It never came to be that ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The decision that `GET /context` answers with. */
export function contextOf(answer: Answer): Pick<Decision, 'allowed' | 'remaining'> & { policy: string } {
  return JSON.parse(answer.body)
}
