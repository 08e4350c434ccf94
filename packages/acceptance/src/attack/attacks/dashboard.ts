import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Throttler } from '@weir/core'
import { attack } from '../harness/attack.ts'
import { ADAPTERS, type Adapter, type Given } from '../harness/given.ts'
import type { Victim } from '../harness/victim.ts'
import { requestText, Wire } from '../harness/wire.ts'

export type Who = 'nobody said' | 'none' | 'function' | 'slow' | 'password'
interface Args {
  readonly who: Who
}
const PASSWORD = 'correct horse battery staple'
const PLACE = '/weir'

/**
 * The headers from a proxy on the same machine that adds no field. The address is this machine, and the host is the proxy's name for the
 * server.
 */
const PROXIED = { Host: 'localhost', 'X-Weir-Dashboard': '1' }
const BLOCK = JSON.stringify({ key: 'k', duration: 60_000 })

/** Tries to use the dashboard without access. Such a client must neither see counts nor change anything. */
export const dashboardAccess = attack<Args>({
  name: 'dashboard-access',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify5', 'koa3', 'node'] },
  victim: dashboardVictim,

  async run({ start, result }) {
    const open = await start({ who: 'nobody said' }).catch((error: Error) => error)
    if (open instanceof Error) result('authorize left out', /WEIR_|authorize/.test(open.message), 'rejected to start')
    else {
      const seen = await peeped(open)
      result('a proxy on the machine, authorize left out', seen.length === 0, seen.join(', '))
      await open.kill()
    }

    const told = await start({ who: 'function' })
    const seen = await peeped(told)
    result('authorize says no', seen.length === 0, seen.join(', '))
    await told.kill()

    const guarded = await start({ who: 'password' }).catch((error: Error) => error)
    if (guarded instanceof Error) {
      result('the sign-in by password', false, `does not start: ${guarded.message.split('\n').find((line) => /rror/.test(line)) ?? ''}`)
      return
    }
    const unseen = await peeped(guarded)
    result('no password', unseen.length === 0, unseen.join(', '))
    await signIn(guarded, result)
  },
})

/** Opens many pages while `authorize` is slow. No more than `maxClients` may be open. */
export const dashboardClients = attack<Args>({
  name: 'dashboard-clients',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify5', 'koa3', 'node'] },
  victim: dashboardVictim,

  async run({ start, result }) {
    const victim = await start({ who: 'slow' })
    const wires = Array.from({ length: 20 }, () => new Wire(victim.port))
    for (const wire of wires) void wire.request('GET', `${PLACE}/events`, { 'x-who': 'operator' })
    // An open stream does not end, so the attacked process counts them.
    await new Promise((resolve) => setTimeout(resolve, 600))
    const streams = await victim.ask<number>('streams')
    for (const wire of wires) wire.close()
    result('20 at once, authorize takes 100 ms, maxClients 3', victim.up && streams <= 3 && streams > 0, `${streams} open`)
  },
})

/** Lists everything that a client without access could see or do. */
async function peeped(victim: Victim): Promise<string[]> {
  const wire = new Wire(victim.port)
  const got: string[] = []
  const page = await wire.request('GET', `${PLACE}/`, PROXIED)
  // The page to sign in is public. Only the dashboard itself is secret.
  if (page.status === 200 && !/type="?password/i.test(page.body)) got.push('the page')
  for (const place of [
    `${PLACE}/events`,
    `${PLACE}//events`,
    `${PLACE}/x/../events`,
    `${PLACE}/events/`,
    `${PLACE}/events?x`,
    `${PLACE}/events;x`,
  ]) {
    const before = await victim.ask<number>('opened')
    // An open stream does not end, so the patience is short.
    const { body } = await wire.send(requestText('GET', place, PROXIED), 400)
    if ((await victim.ask<number>('opened')) > before || /event: (hello|view)/.test(body)) got.push(`events by ${place}`)
  }
  for (const action of ['block', 'unblock', 'find']) {
    const reply = await wire.request(
      'POST',
      `${PLACE}/${action}`,
      { ...PROXIED, Origin: 'http://localhost', 'Content-Type': 'application/json' },
      BLOCK,
    )
    if (reply.status === 200 && /"(done|parts)"/.test(reply.body)) got.push(action)
  }
  wire.close()
  if (await victim.ask<boolean>('blocked')) got.push('a key was blocked')
  return got
}

/** Attacks the sign-in. It reads the form's action and field name from the page. */
async function signIn(victim: Victim, result: (tried: string, held: boolean, figure?: string) => void): Promise<void> {
  const wire = new Wire(victim.port)
  const page = await wire.request('GET', `${PLACE}/`, { Host: 'localhost', Accept: 'text/html' })
  const input = /<input[^>]*type="?password"?[^>]*>/i.exec(page.body)?.[0] ?? ''
  const name = /name="?([\w-]+)/i.exec(input)?.[1]
  const form = /<form[^>]*>/i.exec(page.body)?.[0] ?? ''
  const action = /action="?([^"\s>]*)/i.exec(form)?.[1] ?? ''
  const place = new URL(action, `http://localhost${PLACE}/`).pathname
  if (name === undefined) return result('a page to sign in', false, `status ${page.status}, no field for a password`)
  const send = (password: string, fields: Record<string, string> = {}): ReturnType<Wire['request']> =>
    wire.request(
      'POST',
      place,
      {
        Host: 'localhost',
        Origin: 'http://localhost',
        'Sec-Fetch-Site': 'same-origin',
        'Content-Type': 'application/x-www-form-urlencoded',
        ...fields,
      },
      `${name}=${encodeURIComponent(password)}`,
    )
  const cookieOf = (reply: { headers: Readonly<Record<string, string>> }): string => reply.headers['set-cookie']?.split(';')[0] ?? ''
  const views = async (cookie: string): Promise<boolean> => {
    const reply = await wire.request('GET', `${PLACE}/`, { Host: 'localhost', Cookie: cookie })
    return reply.status === 200 && !/type="?password/i.test(reply.body)
  }

  const foreign = cookieOf(await send(PASSWORD, { Origin: 'http://evil.example', 'Sec-Fetch-Site': 'cross-site' }))
  result('signed in by another site', foreign === '' || !(await views(foreign)))
  const good = await send(PASSWORD)
  const cookie = cookieOf(good)
  const attributes = good.headers['set-cookie'] ?? ''
  result('the right password', cookie !== '' && (await views(cookie)), `status ${good.status}`)
  result(
    'what protects the cookie',
    /HttpOnly/i.test(attributes) && /SameSite=(Strict|Lax)/i.test(attributes),
    attributes.replace(cookie, '…'),
  )
  const [key = '', token = ''] = cookie.split(/=(.*)/)
  const forged = [
    '',
    'x',
    token.slice(1),
    `${token}x`,
    token.replace(/.$/, (end) => (end === 'A' ? 'B' : 'A')),
    '__proto__',
    '0'.repeat(token.length),
  ]
  let through = 0
  for (const value of forged) if (await views(`${key}=${value}`)) through++
  result('forged cookies', through === 0, `${through} of ${forged.length} let in`)

  let limited = 0
  let cookies = 0
  const guesses = ['', ' ', PASSWORD.slice(1), `${PASSWORD}x`, PASSWORD.toUpperCase(), '%', 'x'.repeat(100_000), '__proto__']
  for (let i = 0; i < 100; i++) {
    const reply = await send(guesses[i] ?? `guess${i}`, { 'X-Forwarded-For': `203.0.113.${i}` })
    if (reply.status === 429) limited++
    if (cookieOf(reply) !== '' && (await views(cookieOf(reply)))) cookies++
  }
  result('100 wrong passwords', cookies === 0 && limited > 50, `${limited} of them not looked at, ${cookies} let in`)
  wire.close()
}

/** The attacked dashboard. `fuzz-dashboard.ts` also uses it. */
export async function dashboardVictim({
  target,
  args: { who },
}: Given<Args>): Promise<{ port: number; answer: (question: never) => unknown }> {
  const { createThrottler } = await import('@weir/core')
  const throttler = createThrottler({ policies: [{ limit: 5, interval: '1h' }] }) as Throttler
  throttler.check('k')
  // Read at run time, because a packed version may not export it yet.
  const made = (await import('@weir/dashboard')) as unknown as { password?: (password: string) => unknown }
  const operator = (request: IncomingMessage): boolean => request.headers['x-who'] === 'operator'
  const authorize = {
    'nobody said': undefined,
    none: 'none',
    function: operator,
    slow: (request: IncomingMessage) => new Promise((resolve) => setTimeout(() => resolve(operator(request)), 100)),
    password: who === 'password' ? made.password?.(PASSWORD) : undefined,
  }[who]
  if (who === 'password' && authorize === undefined) throw new Error('@weir/dashboard has no password()')
  const options = { maxClients: who === 'slow' ? 3 : 50, ...(authorize !== undefined && { authorize, actions: true }) }
  const listener = await mounted(target as Adapter, throttler, options as never)
  let streams = 0
  let opened = 0
  const server = createServer((request, response) => {
    const { writeHead } = response
    response.writeHead = ((...args: [number, Record<string, string>?]) => {
      if (JSON.stringify(args).includes('event-stream')) {
        streams++
        opened++
        response.once('close', () => streams--)
      }
      return (writeHead as (...all: unknown[]) => typeof response).apply(response, args)
    }) as never
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const heap = (): number => {
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  }
  const answer = (question: string): unknown => {
    if (question === 'streams') return streams
    if (question === 'opened') return opened
    if (question === 'heap') return heap()
    return throttler.peek('k').reason === 'blocked'
  }
  return { port: (server.address() as AddressInfo).port, answer: answer as never }
}

async function mounted(target: Adapter, throttler: Throttler, options: never): Promise<RequestListener> {
  if (target.startsWith('express')) {
    const { default: express } = (await import(target === 'express4' ? ('express4' as string) : 'express')) as {
      default: typeof import('express')
    }
    const { dashboard } = await import('@weir/dashboard/express')
    const app = (express as unknown as () => { use(...all: unknown[]): void })()
    app.use(PLACE, dashboard(throttler, options))
    return app as unknown as RequestListener
  }
  if (target.startsWith('fastify')) {
    const { default: fastify } = (await import((target === 'fastify4' ? 'fastify4' : 'fastify') as string)) as {
      default: typeof import('fastify').fastify
    }
    const { dashboard } = await import('@weir/dashboard/fastify')
    const app = fastify()
    await app.register(dashboard, { prefix: PLACE, throttler, ...(options as object) } as never)
    await app.ready()
    return (request, response) => app.routing(request, response)
  }
  if (target.startsWith('koa')) {
    const { default: Koa } = (await import(target === 'koa2' ? ('koa2' as string) : 'koa')) as { default: new () => import('koa') }
    const { dashboard } = await import('@weir/dashboard/koa')
    const app = new Koa()
    app.silent = true
    app.use(dashboard(throttler, { path: PLACE, ...(options as object) } as never))
    return app.callback()
  }
  const { dashboard } = await import('@weir/dashboard')
  return dashboard(throttler, { path: PLACE, ...(options as object) } as never)
}
