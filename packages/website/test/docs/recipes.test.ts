import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import type { Throttler } from '@weir/core'
import { createThrottler, memoryStore } from '@weir/core'
import { RedisServer } from '@weir/tooling/redis-servers'
import { buildSchema, type GraphQLSchema } from 'graphql'
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

/** Starts a server until the test ends. Returns its address. */
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

/** Sends the same request repeatedly. Returns the statuses. */
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

// Sets `Date` to the middle of an hour, so that no test crosses a boundary of a window.
const atHalfPast = () => vi.useFakeTimers({ toFake: ['Date'], now: new Date('2027-03-01T10:30:00.500Z') })

test('every recipe is tried here, and has at most twenty lines', () => {
  const tried = [
    'database-time',
    'graphql',
    'jwt',
    'login',
    'quotas',
    'shutdown',
    'tenants',
    'tokens',
    'two-apps',
    'uploads',
    'usage',
    'webhooks',
    'websockets',
  ]
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
  // A right password clears the failed attempts.
  expect(await statusOf(url, right)).toBe(200)
  expect(await statuses(6, url, wrong)).toEqual([...times(5, 401), 429])
  expect(await statusOf(url, right)).toBe(429)
  // Right passwords don't count, and clear nothing for the address. 9 of its 50 attempts are used.
  expect(await statuses(60, url, json({ name: 'bob', password: 'right' }))).toEqual(times(60, 200))
  const others = await Promise.all(Array.from({ length: 50 }, (_, i) => statusOf(url, json({ name: `user ${i}`, password: 'wrong' }))))
  expect(others.filter((status) => status === 401)).toHaveLength(41)
})

test('login: no spelling of a name gets guesses of its own', async () => {
  atHalfPast()
  const { loginApp } = await recipe<{ loginApp(matches: (name: string, password: string) => Promise<boolean>): RequestListener }>('login')
  const names = new Set<unknown>()
  const matches = async (name: string) => {
    names.add(name)
    return false
  }
  const url = `${await listen(loginApp(matches))}/login`
  const spellings = ['ann', 'Ann', ' ann', ['ann'], 'ＡＮＮ', 'ann\n']
  const found = []
  for (const name of spellings) found.push(await statusOf(url, json({ name, password: { length: 5 } })))
  expect(found).toEqual([...times(5, 401), 429])
  expect([...names]).toEqual(['ann'])
})

test('jwt', async () => {
  atHalfPast()
  const { api } = await recipe<{ api(verify: (token: string) => Promise<{ sub: string }>): RequestListener }>('jwt')
  let verified = 0
  const verify = async (token: string) => {
    verified++
    if (!token.startsWith('signed ')) throw new Error('bad signature')
    return { sub: token.slice(7) }
  }
  const url = await listen(api(verify))
  const as = (token: string): RequestInit => ({ headers: { Authorization: `Bearer ${token}` } })
  expect(await statuses(101, url, as('signed ann'))).toEqual([...times(100, 200), 429])
  expect(await statusOf(url, as('signed bob'))).toBe(200)
  // Forged tokens share the key of the address.
  const forged = []
  for (let i = 0; i < 101; i++) forged.push(await statusOf(url, as(`forged ${i}`)))
  expect(forged).toEqual([...times(100, 200), 429])
  // Forged tokens beyond the limit of the address are not even verified.
  expect(verified).toBe(203)
  await statuses(150, url, as('forged'))
  expect(verified).toBe(300)
})

test('graphql', async () => {
  atHalfPast()
  const { limited, costOf, LIMIT } = await recipe<{
    limited(schema: GraphQLSchema): RequestListener & { post(path: string, handler: unknown): void }
    costOf(schema: GraphQLSchema, body: object | undefined): number
    LIMIT: number
  }>('graphql')
  const schema = buildSchema('type Query { a: Query, b: Int, list(first: Int, last: Int): [Query] }')
  const app = limited(schema)
  app.post('/graphql', (_req: unknown, res: { send(text: string): void }) => res.send('data'))
  const url = `${await listen(app)}/graphql`
  const cost = (query: unknown, variables?: object) => costOf(schema, { query, ...(variables && { variables }) })
  expect(cost('{ a { b } x: b }')).toBe(3)
  const tenFields = json({ query: `{ ${Array.from('abcdefghij', (name) => `${name}: b`).join(' ')} }` })
  expect(await statuses(6, url, tenFields)).toEqual([...times(5, 200), 429])
  // A query that can't be read within the bounds costs the whole limit.
  for (const bad of ['', '{', undefined, `{ ${'b '.repeat(1_000_000)} }`]) expect(cost(bad)).toBe(LIMIT)
  expect([costOf(schema, undefined), costOf(schema, [{ query: '{ b }' }])]).toEqual([LIMIT, LIMIT])
  // Queries that would cost more than a simple count: reused fragments, nested fragments, pages, and variables for the page size.
  const uses = (name: string, count: number) => Array.from({ length: count }, (_, i) => `x${i}: a { ...${name} }`).join(' ')
  expect(cost(`{ ${uses('F', 6)} } fragment F on Query { ${'abcdefg'.replace(/./g, ' $&: b')} }`)).toBe(48)
  const doubling = Array.from({ length: 100 }, (_, i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`).join(' ')
  expect(cost(`{ ...F0 } ${doubling} fragment F100 on Query { b }`)).toBe(LIMIT)
  expect([cost('{ list(first: 10) { b } }'), cost('{ list(last: 1000000) { b } }')]).toEqual([11, LIMIT])
  expect(cost('query ($n: Int) { list(first: $n) { b } }', { n: 20 })).toBe(21)
  expect(cost('query ($n: Int = 30) { list(first: $n) { b } }')).toBe(31)
  expect(cost('{ list(first: -5) { b } b }')).toBe(3)
  expect(cost('{ list(first: 1, last: 1000000) { b } }')).toBe(LIMIT)
  expect(cost('{ list(first: null, last: 9) { b } }')).toBe(10)
  expect(cost('{ list(first: 4) { list(last: 3) { b } } }')).toBe(17)
  expect(cost('query A { b } query B { a { x: b y: b } }')).toBeGreaterThanOrEqual(3)
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
  // Pings count too. A frame that is too long ends only its connection, not the process.
  const [, pinging, shouting] = sockets as WebSocket[]
  vi.advanceTimersByTime(2_000)
  const ended = (one: WebSocket | undefined) => new Promise<number>((resolve) => one?.once('close', resolve))
  const ends = [ended(pinging), ended(shouting)]
  for (let i = 0; i < 6; i++) pinging?.ping()
  expect(await ends[0]).toBe(1008)
  shouting?.on('error', () => {})
  shouting?.send('x'.repeat(100_000))
  expect([1006, 1009]).toContain(await ends[1])
})

test('websockets: a client that goes on after it was told to stop is cut off', async () => {
  atHalfPast()
  const { limitSockets } = await recipe<{ limitSockets(server: Server): void }>('websockets')
  const server = createServer()
  limitSockets(server)
  const socket = new WebSocket((await listen(server)).replace('http', 'ws'))
  onTestFinished(() => socket.terminate())
  await new Promise((resolve) => socket.once('open', resolve))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  for (let i = 0; i < 10_000; i++) socket.send(String(i))
  await closed
})

test('websockets: a client that does not read the answers is cut off', async () => {
  const { limitSockets } = await recipe<{ limitSockets(server: Server): void }>('websockets')
  vi.useFakeTimers({ toFake: ['Date', 'hrtime'] })
  const server = createServer()
  limitSockets(server)
  const connected = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const socket = new WebSocket((await listen(server)).replace('http', 'ws'))
  onTestFinished(() => socket.terminate())
  await new Promise((resolve) => socket.once('open', resolve))
  socket.pause()
  const peer = await connected
  // One message a second, so that the limit allows all. The system's buffers accept the first answers.
  const LENGTH = 60_000
  let sent = 0
  for (; sent < 1_000 && !peer.destroyed; sent++) {
    const before = peer.bytesRead
    socket.send('x'.repeat(LENGTH))
    while (!peer.destroyed && peer.bytesRead < before + LENGTH) await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(1_000)
  }
  expect(peer.destroyed).toBe(true)
  expect(sent * LENGTH).toBeGreaterThan(2 ** 20)
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
  // A burst causes one query.
  asked.length = 0
  await Promise.all(Array.from({ length: 20 }, () => statusOf(url, as('new'))))
  expect(asked).toEqual(['new'])
  // Invented tenants cause a query only within the limit of the address.
  asked.length = 0
  const made = []
  for (let i = 0; i < 600; i++) made.push(await statusOf(url, as(`made-up ${i}`)))
  expect(made).toEqual(times(600, 429))
  expect(asked.length).toBeLessThan(600 - 3 - 6 - 1 - 61 - 20 + 1)
})

test('quotas', async () => {
  atHalfPast()
  const { api } = await recipe<{ api(): RequestListener }>('quotas')
  const url = await listen(api())
  const as = { headers: { 'x-api-key': 'secret' } }
  const first = await fetch(url, as)
  expect(first.headers.get('ratelimit-policy')).toBe('"day";q=10000;w=86400, "minute";q=100;w=60')
  expect(await statuses(100, url, as)).toEqual([...times(99, 200), 429])
  const rejected = await fetch(url, as)
  expect(rejected.headers.get('ratelimit')).toMatch(/^"day";r=9900;t=\d+, "minute";r=0;t=\d+$/)
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
  await vi.waitFor(async () => expect((await blog.usage('ann'))[0]).toMatchObject({ used: 0, source: 'store' }), 20_000)
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
  // The answer is shorter than its maximum, or the stream is cancelled, so the unused tokens return. A longer answer ends at its maximum.
  expect(await read(ask('ann', 900, answer(100)))).toBe(100)
  expect(await read(ask('ann', 800, answer(800)), 50)).toBe(50)
  expect(await read(ask('ann', 800, answer(900)))).toBe(800)
  await expect(read(ask('ann', 100, answer(1)))).rejects.toThrow(/Try again in \d+ s/)
  expect(await read(ask('bob', 100, answer(1)))).toBe(1)
  // Streams at the same time: their maxima count until they end.
  const carol = Array.from({ length: 10 }, () => ask('carol', 150, answer(10)))
  const started = await Promise.allSettled(carol.map((stream) => stream.next()))
  expect(started.filter(({ status }) => status === 'fulfilled')).toHaveLength(6)
  for (const stream of carol) await stream.return(undefined)
  expect(await read(ask('carol', 900, answer(1)))).toBe(1)
  // The reserve of a stream that is never settled drains from the bucket as time passes.
  vi.useFakeTimers({ toFake: ['Date', 'hrtime'] })
  const later = metered(1000)
  await later('eve', 900, answer(5)).next()
  await expect(read(later('eve', 900, answer(1)))).rejects.toThrow(/Try again in \d+ s/)
  vi.advanceTimersByTime(60_000)
  expect(await read(later('eve', 900, answer(1)))).toBe(1)
})

test('uploads', async () => {
  type Upload = (user: string, req: IncomingMessage, save: (part: Buffer) => Promise<void>) => Promise<number>
  const { upload } = await recipe<{ upload: Upload }>('uploads')
  let saved = 0
  const save = async (part: Buffer) => void (saved += part.length)
  const ended: number[] = []
  const url = await listen((req, res) => {
    upload('ann', req, save).then(
      (status) => res.writeHead(status, { Connection: 'close' }).end(),
      () => ended.push(saved),
    )
  })
  /** Sends the begin of a body. Returns the request, and its status once there is one. */
  const begin = (headers: OutgoingHttpHeaders, body = '') => {
    const one = request(url, { method: 'POST', headers })
    const status = once(one, 'response').then(([response]) => response.statusCode as number)
    status.catch(() => {})
    if (body === '') one.flushHeaders()
    else one.write(body)
    return { one, status }
  }
  // Units that were counted before the code of the store was loaded would not return.
  expect(await statusOf(url, { method: 'POST', body: 'x' })).toBe(200)
  await vi.dynamicImportSettled()
  saved = 0
  const large = { 'Content-Length': 990_000 }
  const open = Array.from({ length: 5 }, () => begin({ 'Transfer-Encoding': 'chunked' }, 'x'.repeat(1_000)))
  await vi.waitFor(() => expect(saved).toBe(5_000), 20_000)
  expect(await begin(large).status).toBe(429)
  expect(await begin({ 'Content-Length': 1_000_001 }).status).toBe(413)
  // One is cut off, so its rest returns. The others have ended before they were expected to.
  const [cut, ...others] = open
  cut?.one.destroy()
  await vi.waitFor(() => expect(ended).toHaveLength(1), 20_000)
  for (const { one } of others) one.end()
  expect(await Promise.all(others.map(({ status }) => status))).toEqual(times(4, 200))
  expect(await statuses(5, url, { method: 'POST', body: 'x'.repeat(990_000) })).toEqual(times(5, 200))
  expect(await begin(large).status).toBe(429)
})

test('database-time', async () => {
  const { timed } = await recipe<{ timed<T>(tenant: string, query: () => Promise<T>, timeout?: number): Promise<T> }>('database-time')
  let finish: (value: string) => void = () => {}
  const finished = new Promise<string>((resolve) => {
    finish = resolve
  })
  // One query with a long timeout, so that its time fits even on a busy machine.
  const open = timed('ann', () => finished, 10_000)
  await expect(timed('ann', async () => 'more')).rejects.toThrow(/Try again in \d+ s/)
  expect(await timed('bob', async () => 'done')).toBe('done')
  finish('rows')
  expect(await open).toBe('rows')
  expect(await timed('ann', async () => 'more')).toBe('more')
  // A query that fails counts its time, here less than is left.
  const failed = timed('ann', async () => await Promise.reject(new Error('broken')))
  await expect(failed).rejects.toThrow('broken')
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
  // The receiver set a delay of two seconds.
  expect((arrived[3] as number) - (arrived[2] as number)).toBeGreaterThan(1_500)
})

test('webhooks: an answer without end and a redirect elsewhere cost nothing further', async () => {
  const { deliver } = await recipe<{ deliver(url: string, event: object): Promise<boolean> }>('webhooks')
  let reached = 0
  const elsewhere = await listen((_req, res) => {
    reached++
    res.end()
  })
  let cut = 0
  const url = await listen((req, res) => {
    req.resume()
    if (req.url === '/redirect') return void res.writeHead(307, { Location: elsewhere }).end()
    res.on('close', () => cut++)
    const write = () => {
      while (!res.destroyed && res.write('x'.repeat(65_536)));
      if (!res.destroyed) res.once('drain', write)
    }
    write()
  })
  expect(await deliver(`${url}/redirect`, {})).toBe(false)
  expect(reached).toBe(0)
  expect(await deliver(`${url}/endless`, {})).toBe(true)
  await vi.waitFor(() => expect(cut).toBe(1), 20_000)
})
