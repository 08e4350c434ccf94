// Runs on Bun and Deno in a project with the packed packages, twice at a time. Both processes share limits of 20 through Redis. The output
// is JSON with the statuses that this process got, and the headers of a rejection.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createThrottler, type Throttler } from '@weir/core'
import { throttle as throttleExpress } from '@weir/express'
import { weir } from '@weir/fastify'
import { throttle as throttleHono } from '@weir/hono'
import { redisStore } from '@weir/redis'
import { throttle as throttleWeb } from '@weir/web'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'

type Handler = (request: Request, platform: object) => Response | Promise<Response>

/** The parts of `Bun` and `Deno` that this program uses. */
interface Runtimes {
  readonly Bun?: { serve(options: { port: number; hostname: string; fetch: Handler }): { readonly port: number; stop(): Promise<void> } }
  readonly Deno?: {
    serve(
      options: { port: number; hostname: string; onListen: () => void },
      handler: Handler,
    ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> }
  }
}

const { Bun, Deno } = globalThis as unknown as Runtimes
const hostname = '127.0.0.1'
/** Long, so that hardly ever an interval ends while the program runs, and below a day, because longer ones cause a warning. */
const INTERVAL = '23h' as const
const [url = '', namespace = '', role = ''] = process.argv.slice(2)

const base = (name: string) => ({
  name,
  key: 'ip' as const,
  limit: 20,
  interval: INTERVAL,
  coordination: 'central' as const,
  // A busy machine does not count as an outage.
  storeTimeout: '30s' as const,
  store: redisStore(url, { namespace, timeout: '30s' }),
})

/** Sends 25 requests, one after the other, and returns the numbers of those allowed and rejected, and the headers of the last one. */
async function requests(port: number): Promise<{ allowed: number; rejected: number; headers: Record<string, string> }> {
  const statuses: number[] = []
  let headers: Record<string, string> = {}
  for (let sent = 0; sent < 25; sent++) {
    const response = await fetch(`http://${hostname}:${port}/`, { headers: { connection: 'close' } })
    await response.text()
    statuses.push(response.status)
    headers = Object.fromEntries(response.headers)
  }
  return {
    allowed: statuses.filter((status) => status === 200).length,
    rejected: statuses.filter((status) => status === 429).length,
    headers,
  }
}

async function served(handler: Handler): Promise<Awaited<ReturnType<typeof requests>>> {
  if (Bun !== undefined) {
    const server = Bun.serve({ port: 0, hostname, fetch: handler })
    const result = await requests(server.port)
    await server.stop()
    return result
  }
  const server = Deno?.serve({ port: 0, hostname, onListen: () => {} }, handler)
  const result = await requests(server?.addr.port ?? 0)
  await server?.shutdown()
  return result
}

async function withExpress(): Promise<unknown> {
  const limit = throttleExpress(base('express'))
  const app = express()
  app.use(limit)
  app.get('/', (_request, response) => void response.send('hello'))
  const server: Server = app.listen(0, hostname)
  await new Promise((resolve) => server.once('listening', resolve))
  const result = await requests((server.address() as AddressInfo).port)
  await new Promise((resolve) => server.close(resolve))
  await limit.throttler.close()
  return result
}

async function withFastify(): Promise<unknown> {
  const app = fastify()
  await app.register(weir, base('fastify'))
  app.get('/', () => 'hello')
  await app.listen({ port: 0, host: hostname })
  const result = await requests((app.server.address() as AddressInfo).port)
  await app.close()
  return result
}

async function withHono(): Promise<unknown> {
  const limit = throttleHono(base('hono'))
  const app = new Hono().use(limit).get('/', (context) => context.text('hello'))
  const result = await served(app.fetch)
  await limit.throttler.close()
  return result
}

async function withWeb(): Promise<unknown> {
  const limit = throttleWeb(base('web'))
  const result = await served(limit((_request: Request, _platform: object) => new Response('hello')))
  // The platform reports this address.
  const [usage] = await limit.throttler.usage(hostname)
  await limit.throttler.close()
  return { ...result, used: usage?.used }
}

/** Counts in the background. Returns how many of 30 calls were allowed. */
async function inBackground(): Promise<number> {
  const store = redisStore(url, { namespace, timeout: '30s' })
  const throttler: Throttler = createThrottler({ policies: [{ name: 'background', limit: 20, interval: INTERVAL }], store })
  const seen = async (used: number): Promise<void> => {
    const end = Date.now() + 60_000
    while (20 - throttler.peek('ann').remaining < used) {
      if (Date.now() > end) throw new Error(`Not all of ${used} units came from the store.`)
      await throttler.flush()
      await sleep(20)
    }
  }
  const allowed = (calls: number): number => Array.from({ length: calls }, () => throttler.check('ann')).filter((one) => one.allowed).length
  let count = allowed(8)
  await seen(16)
  // Only one process uses the remaining four, because both would count them at the same time.
  if (role === 'first') count += allowed(22)
  await seen(20)
  if (role !== 'first') count += allowed(22)
  await throttler.close()
  return count
}

async function main(): Promise<void> {
  const [background, ...servers] = await Promise.all([inBackground(), withExpress(), withFastify(), withHono(), withWeb()])
  console.log(JSON.stringify({ background, servers }))
}

void main()
