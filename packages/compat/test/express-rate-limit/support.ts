import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { memoryStore, type Store as WeirStore } from '@weir/core'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import express, { type RequestHandler } from 'express'
import type { Logger, Store } from 'express-rate-limit'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { type ExpressRateLimitStore, type ExpressRateLimitStoreOptions, expressRateLimitStore } from '../../src/express-rate-limit.ts'

export const HOUR = 3_600_000
/** The key of requests from this machine. */
export const ME = '127.0.0.1'

export interface OwnRedis {
  /** A store of one process. Processes share counts by their namespace. */
  process(namespace: string): WeirStore
  command(...command: readonly string[]): Promise<string>
}

/** One real Redis for the tests of a file. */
export function ownRedis(): OwnRedis {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server.stop())
  return {
    // A busy machine does not count as an outage.
    process: (namespace) => redisStore(server.url, { namespace, timeout: 30_000 }),
    command: (...command) => server.command(...command),
  }
}

let cases = 0

/** A namespace that no other case uses. */
export function ownNamespace(): string {
  return `case-${++cases}`
}

/** The stores of Weir under which each case runs, with counts of its own for each case. */
export function weirStores(): (readonly [name: string, store: () => WeirStore])[] {
  const redis = ownRedis()
  return [
    ['memoryStore()', memoryStore],
    ['redisStore()', () => redis.process(ownNamespace())],
  ]
}

/** A store that is shut down after the test. */
export function storeOver(store: WeirStore, options?: ExpressRateLimitStoreOptions): ExpressRateLimitStore {
  const made = expressRateLimitStore(store, options)
  onTestFinished(() => made.shutdown())
  return made
}

/** Shuts a store of any package down after the test. */
export function shutDownLater<T extends Store>(store: T): T {
  onTestFinished(() => store.shutdown?.())
  return store
}

export interface Served {
  readonly url: string
  /** Resolves once the server has finished its response too, so that all hits were taken back. */
  get(path?: string, init?: RequestInit): Promise<{ readonly status: number; readonly headers: Headers; readonly text: string }>
  /** Sends a request, and closes the connection once the server handles it. */
  abort(path: string): Promise<void>
}

/** Routes: `/` 200, `/error` 400, `/status/:code`, `/hang` never answers, `/crash` fails while it answers. */
export async function serve(...middleware: readonly RequestHandler[]): Promise<Served> {
  const app = express()
  // Express prints errors in every other environment.
  app.set('env', 'test')
  const closed: Promise<void>[] = []
  let hung = () => {}
  app.use((_req, res, next) => {
    closed.push(new Promise((resolve) => res.once('close', () => setImmediate(resolve))))
    next()
  })
  for (const one of middleware) app.use(one)
  app.get('/hang', () => hung())
  app.get('/crash', (_req, res) => {
    res.once('error', () => {})
    res.destroy(new Error('broken'))
  })
  app.get('/error', (_req, res) => void res.sendStatus(400))
  app.all('/status/:code', (req, res) => void res.sendStatus(Number(req.params['code'])))
  app.all('/', (_req, res) => void res.send('hello'))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    async get(path = '/', init = {}) {
      const response = await fetch(url + path, init)
      const { status, headers } = response
      const text = await response.text()
      await Promise.all(closed)
      return { status, headers, text }
    },
    async abort(path) {
      const handled = new Promise<void>((resolve) => {
        hung = resolve
      })
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
      await handled
      socket.destroy()
      await Promise.all(closed)
    },
  }
}

/** The statuses of several requests, one after another. */
export async function statuses({ get }: Served, paths: readonly string[]): Promise<number[]> {
  const found: number[] = []
  for (const path of paths) found.push((await get(path)).status)
  return found
}

/** A logger that keeps its messages, so that a test can expect none. */
export function keeping(): Logger & { readonly lines: string[] } {
  const lines: string[] = []
  const keep = (...parts: unknown[]) => void lines.push(parts.map((part) => (part instanceof Error ? part.message : `${part}`)).join(' '))
  return { lines, error: keep, warn: keep }
}

/** Waits for the next window of this length, and repeats the steps until a window contains all of them. */
export async function withinWindow<T>(windowMs: number, steps: () => Promise<T>): Promise<T> {
  for (;;) {
    // Windows that begin with the first request of an earlier attempt have ended then, too.
    await ended(windowMs)
    const began = Math.floor(Date.now() / windowMs)
    const result = await steps()
    if (Math.floor(Date.now() / windowMs) === began) return result
  }
}

/** Waits until the running windows have ended, whenever they began, and for the start of one. */
export async function ended(windowMs: number): Promise<void> {
  await windowAfter(windowMs)
  await windowAfter(windowMs)
}

/** Waits for the start of the next window, whether windows begin with the clock or with the first request. */
export async function windowAfter(windowMs: number): Promise<void> {
  const until = (Math.floor(Date.now() / windowMs) + 1) * windowMs + 5
  while (Date.now() < until) await new Promise((resolve) => setTimeout(resolve, until - Date.now()))
}
