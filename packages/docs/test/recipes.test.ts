import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Throttler } from '@weir/core'
import { createThrottler, memoryStore } from '@weir/core'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { blocksOf, PACKAGE, pages } from './pages.ts'

vi.setConfig({ testTimeout: 60_000 })

const directory = join(PACKAGE, 'dist', 'recipes')
mkdirSync(directory, { recursive: true })
const recipes = pages().filter(({ path }) => path.startsWith(join('docs', 'recipes')) && !path.endsWith('README.md'))

/** The program of a recipe, as a module. */
async function recipe<Module>(name: string): Promise<Module> {
  const page = recipes.find(({ path }) => path.endsWith(`${name}.md`))
  const [block] = (page === undefined ? [] : blocksOf(page)).filter(({ info }) => info === 'ts check')
  if (block === undefined) throw new Error(`There is no recipe ${name}`)
  const file = join(directory, `${name}.ts`)
  writeFileSync(file, block.code)
  return (await import(file)) as Module
}

/** Starts a server for the time of the test; returns its address. */
async function listen(app: RequestListener | Server): Promise<string> {
  const server = typeof app === 'function' ? createServer(app) : app
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const statusOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).status

/** Sends the same request over and over; returns the statuses. */
async function statuses(count: number, url: string, init?: RequestInit): Promise<number[]> {
  const list: number[] = []
  for (let i = 0; i < count; i++) list.push(await statusOf(url, init))
  return list
}

const times = (count: number, status: number): number[] => Array.from({ length: count }, () => status)
const json = (body: object): RequestInit => ({
  method: 'POST',
  body: JSON.stringify(body),
  headers: { 'Content-Type': 'application/json' },
})

afterEach(() => {
  vi.useRealTimers()
})

// Windows of the Unix epoch, in the middle of which no test may find itself at a boundary: `Date` stands at the middle of an hour.
const atHalfPast = () => vi.useFakeTimers({ toFake: ['Date'], now: new Date('2027-03-01T10:30:00.500Z') })

test('every recipe is tried here, and has at most twenty lines', () => {
  const tried = ['graphql', 'jwt', 'login', 'quotas', 'shutdown', 'tenants', 'tokens', 'two-apps', 'usage', 'webhooks', 'websockets']
  expect(recipes.map(({ path }) => path.replace(/^.*\/|\.md$/g, '')).sort()).toEqual(tried)
  for (const page of recipes)
    for (const { code, line } of blocksOf(page)) expect(code.split('\n').length, `${page.path}:${line}`).toBeLessThan(21)
})

test('login', async () => {
  atHalfPast()
  const { loginApp } = await recipe<{ loginApp(matches: (name: string, password: string) => Promise<boolean>): RequestListener }>('login')
  const url = `${await listen(loginApp(async (_name, password) => password === 'right'))}/login`
  const wrong = json({ name: 'ann', password: 'wrong' })
  const right = json({ name: 'ann', password: 'right' })
  expect(await statuses(4, url, wrong)).toEqual(times(4, 401))
  // Clears what was guessed.
  expect(await statusOf(url, right)).toBe(200)
  expect(await statuses(6, url, wrong)).toEqual([...times(5, 401), 429])
  expect(await statusOf(url, right)).toBe(429)
  // Right passwords count nowhere, and clear nothing of the address: 9 of 50 are gone.
  expect(await statuses(60, url, json({ name: 'bob', password: 'right' }))).toEqual(times(60, 200))
  const others = await Promise.all(Array.from({ length: 50 }, (_, i) => statusOf(url, json({ name: `user ${i}`, password: 'wrong' }))))
  expect(others.filter((status) => status === 401)).toHaveLength(41)
})

test('jwt', async () => {
  atHalfPast()
  const { api } = await recipe<{ api(verify: (token: string) => Promise<{ sub: string }>): RequestListener }>('jwt')
  const verify = async (token: string) => {
    if (!token.startsWith('signed ')) throw new Error('bad signature')
    return { sub: token.slice(7) }
  }
  const url = await listen(api(verify))
  const as = (token: string): RequestInit => ({ headers: { Authorization: `Bearer ${token}` } })
  expect(await statuses(101, url, as('signed ann'))).toEqual([...times(100, 200), 429])
  expect(await statusOf(url, as('signed bob'))).toBe(200)
  // Forged ones share a key, that of the address.
  const forged = []
  for (let i = 0; i < 101; i++) forged.push(await statusOf(url, as(`forged ${i}`)))
  expect(forged).toEqual([...times(100, 200), 429])
})

test('graphql', async () => {
  atHalfPast()
  const { limited, fieldsOf, LIMIT } = await recipe<{
    limited(): RequestListener & { post(path: string, handler: unknown): void }
    fieldsOf(query: unknown): number
    LIMIT: number
  }>('graphql')
  const app = limited()
  app.post('/graphql', (_req: unknown, res: { send(text: string): void }) => res.send('data'))
  const url = `${await listen(app)}/graphql`
  expect(fieldsOf('{ a b { c } }')).toBe(3)
  const most = 'a '.repeat(1_000_000)
  for (const bad of ['', '{', undefined, `{ ${most} }`]) expect(fieldsOf(bad)).toBe(LIMIT)
  const tenFields = json({ query: `{ ${'abcdefghij'.split('').join(' ')} }` })
  expect(await statuses(6, url, tenFields)).toEqual([...times(5, 200), 429])
})

test('websockets', async () => {
  atHalfPast()
  const { limitSockets } = await recipe<{ limitSockets(server: Server): void }>('websockets')
  const server = createServer()
  limitSockets(server)
  const url = (await listen(server)).replace('http', 'ws')
  const open = () =>
    new Promise<WebSocket | number | undefined>((resolve, reject) => {
      const socket = new WebSocket(url)
      onTestFinished(() => socket.terminate())
      socket.once('open', () => resolve(socket))
      socket.once('error', reject)
      socket.once('unexpected-response', (_request, { statusCode }) => resolve(statusCode))
    })
  const sockets = [await open(), await open(), await open()]
  expect(await open()).toBe(429)
  const [socket] = sockets as [WebSocket]
  const said: string[] = []
  socket.on('message', (data) => said.push(String(data)))
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  for (let i = 0; i < 6; i++) socket.send(String(i))
  expect(await closed).toBe(1008)
  expect(said).toEqual(['got 0', 'got 1', 'got 2', 'got 3', 'got 4'])
})

test('usage', async () => {
  atHalfPast()
  const { api } = await recipe<{ api(): RequestListener }>('usage')
  const url = await listen(api())
  const as = { headers: { 'x-api-key': 'secret' } }
  expect(await statuses(3, url, as)).toEqual(times(3, 200))
  const usage = async () => (await fetch(`${url}/usage`, as)).json()
  expect(await usage()).toEqual({ used: 3, left: 997, again: 48_600, exact: true })
  expect(await usage()).toMatchObject({ used: 3 })
  await statuses(8, `${url}/usage`, as)
  expect(await statusOf(`${url}/usage`, as)).toBe(429)
})

test('tenants', async () => {
  atHalfPast()
  const { api } = await recipe<{ api(perMinute: (tenant: string) => Promise<number | undefined>): RequestListener }>('tenants')
  const asked: string[] = []
  const contracts: Record<string, number> = { small: 2, large: 5 }
  const url = await listen(
    api(async (tenant) => {
      asked.push(tenant)
      if (tenant === 'broken') throw new Error('the database is away')
      return contracts[tenant]
    }),
  )
  const as = (tenant: string): RequestInit => ({ headers: { 'x-tenant': tenant } })
  expect(await statuses(3, url, as('small'))).toEqual([200, 200, 429])
  expect(await statuses(6, url, as('large'))).toEqual([...times(5, 200), 429])
  expect(await statusOf(url, as('nobody'))).toBe(429)
  expect(await statuses(61, url, as('broken'))).toEqual([...times(60, 200), 429])
  // A burst asks once.
  asked.length = 0
  await Promise.all(Array.from({ length: 20 }, () => statusOf(url, as('new'))))
  expect(asked).toEqual(['new'])
})

test('quotas', async () => {
  atHalfPast()
  const { api } = await recipe<{ api(): RequestListener }>('quotas')
  const url = await listen(api())
  const as = { headers: { 'x-api-key': 'secret' } }
  const first = await fetch(url, as)
  expect(first.headers.get('ratelimit-policy')).toBe('"day";q=10000;w=86400, "minute";q=100;w=60')
  expect(await statuses(100, url, as)).toEqual([...times(99, 200), 429])
  const refused = await fetch(url, as)
  expect(refused.headers.get('ratelimit')).toMatch(/^"day";r=9900;t=\d+, "minute";r=0;t=\d+$/)
})

test('two apps', async () => {
  const redis = await RedisServer.start()
  const apps = await recipe<Record<'shop' | 'blog', (url: string) => Throttler>>('two-apps')
  const [shop, blog] = [apps.shop(redis.url), apps.blog(redis.url)]
  onTestFinished(async () => {
    await Promise.all([shop.close(), blog.close()])
    await redis.stop()
  })
  await Promise.all([shop.start(), blog.start()])
  await vi.waitFor(() => expect([shop.state, blog.state]).toEqual(['synced', 'synced']), 20_000)
  expect([1, 2, 3].map(() => shop.check('ann').allowed)).toEqual([true, true, false])
  await vi.waitFor(async () => expect((await shop.usage('ann'))[0]).toMatchObject({ used: 2, source: 'store' }), 20_000)
  expect((await blog.usage('ann'))[0]).toMatchObject({ used: 0, source: 'store' })
  expect(blog.check('ann').allowed).toBe(true)
})

test('tokens', async () => {
  type Metered = (user: string, estimate: number, stream: AsyncIterable<string>) => AsyncGenerator<string>
  const { metered } = await recipe<{ metered(perMinute: number): Metered }>('tokens')
  const answer = async function* (tokens: number) {
    for (let i = 0; i < tokens; i++) yield 'token '
  }
  const read = async (stream: AsyncIterable<string>, most = Number.POSITIVE_INFINITY) => {
    let count = 0
    for await (const _ of stream) if (++count >= most) break
    return count
  }
  const ask = metered(1000)
  // Less than estimated, and a stream that is given up: what was not used comes back.
  expect(await read(ask('ann', 900, answer(100)))).toBe(100)
  expect(await read(ask('ann', 800, answer(800)), 50)).toBe(50)
  expect(await read(ask('ann', 800, answer(900)))).toBe(900)
  // More than estimated is charged: 1050 of 1000 are gone.
  await expect(read(ask('ann', 100, answer(1)))).rejects.toThrow(/Try again in \d+ s/)
  expect(await read(ask('bob', 100, answer(1)))).toBe(1)
  // What a stream holds that is never settled leaves the bucket as time passes.
  vi.useFakeTimers({ toFake: ['Date', 'hrtime'] })
  const later = metered(1000)
  await later('eve', 900, answer(5)).next()
  await expect(read(later('eve', 900, answer(1)))).rejects.toThrow(/Try again in \d+ s/)
  vi.advanceTimersByTime(60_000)
  expect(await read(later('eve', 900, answer(1)))).toBe(1)
})

test('shutdown', async () => {
  const { shutDown } = await recipe<{ shutDown(server: Server, throttler: Throttler): Promise<void> }>('shutdown')
  const throttler = createThrottler({ store: memoryStore(), policies: [{ limit: 10, interval: '1m' }] })
  let answer: (() => void) | undefined
  const server = createServer((_req, res) => {
    throttler.check('ann')
    answer = () => void res.end('done')
  })
  const url = await listen(server)
  const running = fetch(url)
  await vi.waitFor(() => expect(answer).toBeDefined(), 10_000)
  const down = shutDown(server, throttler)
  expect(throttler.state).not.toBe('closed')
  answer?.()
  expect(await (await running).text()).toBe('done')
  await down
  expect(throttler.state).toBe('closed')
  await expect(fetch(url)).rejects.toThrow()
})

test('webhooks', async () => {
  const { deliver } = await recipe<{ deliver(url: string, event: object): Promise<boolean> }>('webhooks')
  const arrived: number[] = []
  const url = await listen((req, res) => {
    arrived.push(performance.now())
    req.resume()
    if (arrived.length === 3) res.writeHead(429, { 'Retry-After': '2' })
    res.end()
  })
  const delivered: boolean[] = []
  for (let i = 0; i < 5; i++) delivered.push(await deliver(url, { event: i }))
  expect(delivered).toEqual([true, true, false, true, true])
  // The receiver asked for two seconds.
  expect((arrived[3] as number) - (arrived[2] as number)).toBeGreaterThan(1_500)
})
