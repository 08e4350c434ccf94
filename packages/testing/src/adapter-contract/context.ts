import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import {
  type ClientRequest,
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

/** The members of a throttler that the cases use. They don't depend on the type of its requests. */
export interface AdapterThrottler extends Pick<Throttler, 'on' | 'block' | 'unblock' | 'reset' | 'usage' | 'waiting' | 'close'> {
  peek(key: string): Decision
  update(policies: readonly PolicyOptions[]): void
}

/** A running application. */
export interface AdapterServer {
  /** Listens on a free port of the loopback address. */
  readonly server: Server
  /** The throttlers of the mounted adapters, in order. */
  readonly throttlers: readonly AdapterThrottler[]
  /**
   * Opens a request. For runtimes whose client changes paths.
   *
   * @default that of `node:http`
   */
  readonly request?: (options: RequestOptions) => ClientRequest
  close(): Promise<void>
}

/** The connection of a proxy that the framework trusts. */
export type TrustedProxy = 'loopback' | 'unix'

/** Settings of an application beside the adapter's options. */
export interface AdapterServerOptions {
  /** Delays the answer of `GET /work` until its promise resolves. */
  readonly work: () => Promise<void>
  /** Serves HTTP/2 without TLS. */
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

/** Builds applications with an adapter in them. `Req` is the type of the framework's requests. */
export interface AdapterUnderTest<Req> {
  /** Whether an adapter that is mounted for the whole application gets the pattern of a route, or only the path. */
  readonly routes: 'pattern' | 'path'
  /** Whether the framework reports to the adapter that a handler has ended. */
  readonly handlerEnd: boolean
  /** Whether the framework serves HTTP/2. */
  readonly http2: boolean
  /** Whether `start` supports the option `proxy`: the framework can trust a proxy. */
  readonly proxies?: boolean
  /** Whether `start` supports the option `own`: a route can have its own limits instead of the application's. */
  readonly ownLimits?: boolean
  /**
   * Starts an application that throttles every request, before these routes:
   *
   * | route | answer |
   * |---|---|
   * | `GET /` | `hello` |
   * | `GET /context` | the decision as JSON: `{ "allowed", "remaining", "policy" }`, or `null` without one |
   * | `GET /users/:id` | `user` |
   * | `GET /stream` | `one`, `two`, `three` in three pieces. Before the end, the handler reports `{ tokens: 11 }` by the decision's `used` |
   * | `GET /slow` | the headers and one piece, and nothing more until the client disconnects. The handler reports `{ tokens: 4 }` |
   * | `GET` and `POST /status/:code` | that status and the text `done` |
   * | `GET /bytes/:count` | `count` bytes. After they are sent, the first throttler charges the request one unit for each |
   * | `GET /busy/:milliseconds` | `done`, after that time. Then the first throttler charges one unit for each millisecond that it took |
   * | `GET /work` | `done`, after `await work()` |
   * | `GET /peek` | the last of three decisions of the adapter's `peek` for this request, as JSON: `{ "allowed", "remaining", "reason", "dryRun" }`, or `null` |
   * | `GET /throw` | throws the framework's error with status 418 |
   *
   * All other requests get the framework's own 404.
   *
   * @param inputs the options of the adapter, which is mounted once for each of them, in order
   */
  start(inputs: readonly object[], options: AdapterServerOptions): Promise<AdapterServer>
  /** Returns a header of the framework's request. */
  header(request: Req, name: string): string | undefined
  /** Makes a `handler` option that answers with a text. */
  answering(text: string): unknown
  /** Writes a piece of the response immediately, if necessary without the framework. `args` are the arguments of `handler`. */
  begun(args: readonly unknown[], text: string, last?: boolean): void
  /** Returns the status of the response. `args` are the arguments of `requestWasSuccessful`. */
  status(args: readonly unknown[]): number
}

export type Need = 'store' | 'clock' | 'paths' | 'patterns' | 'proxies' | 'ownLimits' | 'handlerEnd' | 'http2'

/** One behaviour of the adapter contract. */
export interface AdapterCase {
  readonly title: string
  /**
   * Requirements of a case: a store, a clock that the case moves (so no store), an adapter with paths, patterns, proxies or limits
   * of routes, or a framework that reports the ends of handlers or serves HTTP/2.
   */
  readonly needs?: Need | `${Need}, ${Need}`
  run(context: AdapterContext): Promise<void>
}

/** A complete response. */
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
  readonly #request: (options: RequestOptions) => ClientRequest

  constructor({ server, throttlers, request = openRequest }: AdapterServer) {
    this.#server = server
    this.#request = request
    this.port = (server.address() as AddressInfo).port
    this.throttlers = throttlers
    for (const throttler of throttlers) throttler.on('warning', ({ error }) => this.warnings.push(error))
  }

  /** Sends a request. The path is sent unchanged, even if it is invalid. */
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

  /** Counts the connections of the server. */
  connections(): Promise<number> {
    return new Promise((resolve, reject) => this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
  }

  /** Sends requests one after the other, and returns their statuses. */
  async statuses(paths: readonly string[], options: RequestOptions = {}): Promise<number[]> {
    const statuses: number[] = []
    for (const path of paths) statuses.push((await this.send(path, options)).status)
    return statuses
  }

  /** Makes the application also listen on a Unix socket, as behind a proxy on the same machine. Returns the options of requests over it. */
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

  /** Opens a request. The caller reads the response, and may abort it. */
  open(path: string, options: RequestOptions = {}): ClientRequest {
    return this.#request({ host: '127.0.0.1', port: this.port, path, agent: false, ...options })
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

  /** The option of every throttler in a case: the store or the clock. */
  get base(): object {
    return this.#store === undefined ? { clock: this.clock } : { store: this.#store }
  }

  /** Whether `pass` waits in real time, because the cases can't move a store's clock. */
  get realTime(): boolean {
    return this.#store !== undefined
  }

  /** Options of a limit for each route. Its interval of a year does not end while a case runs. */
  limit(limit: number): { key: 'route'; limit: number; interval: number } {
    return { key: 'route', limit, interval: 365 * 24 * 3600 * 1000 }
  }

  /** Starts an application with the adapter, whose options get the clock or store of the case. */
  start(options: object, server?: Partial<AdapterServerOptions>): Promise<AdapterClient> {
    return this.startWith([{ ...this.base, ...options }], server)
  }

  /** Starts an application that mounts the adapter several times, each time with exactly these options. */
  async startWith(inputs: readonly object[], server: Partial<AdapterServerOptions> = {}): Promise<AdapterClient> {
    const started = await this.adapter.start(inputs, { work: this.work.run, http2: false, ...server })
    this.#servers.push(started)
    return new AdapterClient(started)
  }

  /** Lets time pass: on the clock if the cases move it, otherwise in real time. */
  async pass(milliseconds: number): Promise<void> {
    if (this.#store === undefined) await this.clock.advance(milliseconds)
    else await new Promise((resolve) => setTimeout(resolve, milliseconds))
  }

  /** Makes an option function that reads a header of the framework's request. */
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

/** Waits until a condition is true, for up to 15 s because a busy machine may pause for seconds. */
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
