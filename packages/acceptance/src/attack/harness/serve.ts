import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Store, Throttler } from '@weir/core'
import type Express from 'express'
import type Fastify from 'fastify'
import type KoaApp from 'koa'
import type { Adapter, Given } from './given.ts'

/** Options of a service behind an adapter in the attacked process. Its handlers send their name in the field `x-handler`. */
export interface ServeOptions {
  /** The options that the adapter receives. */
  readonly options: object
  /** Literal paths, or patterns that all frameworks support: `/users/:id`. For any method. Default: `/` and all other paths. */
  readonly routes?: readonly string[]
  /** `trust proxy`, `trustProxy`, or settings of a Koa application. */
  readonly trust?: unknown
  /** Further options of the framework: settings of Express, options of Fastify, or options of Koa's router. */
  readonly framework?: Readonly<Record<string, unknown>>
  /** The status of the handlers' responses. */
  readonly status?: number
}

export interface Served {
  readonly port: number
  readonly throttler: Throttler
}

const HANDLER = 'x-handler'

export async function serve(adapter: Adapter, options: ServeOptions): Promise<Served> {
  const { listener, throttler } = await makeApp(adapter, options)
  const server = createServer(listener)
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, throttler }
}

interface App {
  readonly listener: RequestListener
  readonly throttler: Throttler
}

function makeApp(adapter: Adapter, options: ServeOptions): Promise<App> {
  if (adapter.startsWith('express')) return expressApp(adapter, options)
  if (adapter.startsWith('fastify')) return fastifyApp(adapter, options)
  if (adapter.startsWith('koa')) return koaApp(adapter, options)
  return nodeApp(options)
}

async function expressApp(adapter: Adapter, { options, routes, trust, framework, status = 200 }: ServeOptions): Promise<App> {
  const { default: express } = (await import(adapter === 'express4' ? ('express4' as string) : 'express')) as { default: typeof Express }
  const { throttle } = await import('@weir/express')
  const app = express()
  if (trust !== undefined) app.set('trust proxy', trust)
  for (const [name, value] of Object.entries(framework ?? {})) app.set(name, value)
  const limit = throttle(options as Parameters<typeof throttle>[0])
  app.use(limit)
  for (const route of routes ?? []) app.all(route, (_req, res) => void res.status(status).set(HANDLER, route).send('ok'))
  if (routes === undefined) app.use((_req, res) => void res.status(status).set(HANDLER, 'any').send('ok'))
  return { listener: app as unknown as RequestListener, throttler: limit.throttler as Throttler }
}

async function fastifyApp(adapter: Adapter, { options, routes, trust, framework, status = 200 }: ServeOptions): Promise<App> {
  const name = adapter === 'fastify4' ? 'fastify4' : 'fastify'
  const { default: fastify } = (await import(name as string)) as { default: typeof Fastify }
  const { default: weir } = await import('@weir/fastify')
  const app = fastify({ ...(trust !== undefined && { trustProxy: trust as boolean }), ...framework })
  await app.register(weir, options as never)
  const list = routes ?? ['/', '/*']
  for (const route of list) app.all(route, (_request, reply) => reply.code(status).header(HANDLER, route).send('ok'))
  await app.ready()
  return {
    listener: (request, response) => app.routing(request, response),
    throttler: (app as unknown as { throttler: Throttler }).throttler,
  }
}

async function koaApp(adapter: Adapter, { options, routes, trust, framework, status = 200 }: ServeOptions): Promise<App> {
  const { default: Koa } = (await import(adapter === 'koa2' ? ('koa2' as string) : 'koa')) as { default: typeof KoaApp }
  const { default: Router } = await import('@koa/router')
  const { throttle } = await import('@weir/koa')
  const app = new Koa((trust ?? {}) as object)
  app.silent = true
  const router = new Router(framework ?? {})
  const limit = throttle(options as Parameters<typeof throttle>[0])
  app.use(limit)
  const answer = (ctx: KoaApp.Context, route: string): void => {
    ctx.status = status
    ctx.set(HANDLER, route)
    ctx.body = 'ok'
  }
  for (const route of routes ?? []) router.all(route, (ctx) => answer(ctx as unknown as KoaApp.Context, route))
  app.use(router.routes() as unknown as KoaApp.Middleware)
  if (routes === undefined) app.use((ctx: KoaApp.Context) => answer(ctx, 'any'))
  return { listener: app.callback(), throttler: limit.throttler as Throttler }
}

/** A service that routes by the WHATWG URL of its requests, as many services do. */
async function nodeApp({ options, routes, status = 200 }: ServeOptions): Promise<App> {
  const { createGuard, nodeReader } = await import('@weir/core/adapter')
  type Args = readonly [IncomingMessage, ServerResponse]
  const guard = createGuard<IncomingMessage, Args>(options as never, nodeReader as never)
  const matchers = routes?.map((route) => ({ route, regexp: new RegExp(`^${route.replace(/:\w+/g, '[^/]+')}$`) }))
  const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const decided = guard.check(request)
    const decision = await decided
    if (decision?.allowed === false) {
      const rejection = await guard.reject(request, decision)
      for (const name in rejection.headers) response.setHeader(name, rejection.headers[name] as string)
      response.statusCode = rejection.status
      if ((await guard.handle(rejection, [request, response], response)) !== 'failed') return
      response.setHeader('Content-Type', rejection.type)
      response.end(rejection.body)
      return
    }
    if (decision !== undefined) {
      guard.writeHeaders(decision, response, (to, name, value) => void to.setHeader(name, value))
      guard.watch(decision, response, [request, response])
    }
    const path = pathname(request.url ?? '/')
    const found = matchers === undefined ? 'any' : matchers.find(({ regexp }) => path !== undefined && regexp.test(path))?.route
    response.statusCode = found === undefined ? 404 : status
    if (found !== undefined) response.setHeader(HANDLER, found)
    response.end('ok')
  }
  return { listener: (request, response) => void listener(request, response), throttler: guard.throttler as Throttler }
}

function pathname(url: string): string | undefined {
  try {
    return new URL(url, 'http://h').pathname
  } catch {
    return undefined
  }
}

/** The store of this run, to be spread into options. */
export async function storeOf({ store, redis, namespace }: Given): Promise<{ store?: Store }> {
  if (store === 'memory') return { store: (await import('@weir/core')).memoryStore() }
  if (store === 'redis') return { store: (await import('@weir/redis')).redisStore(redis as string, { namespace }) }
  return {}
}
