import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { concurrency, leakyBucket } from '@weir/core'
import { type AdapterCase, type AdapterClient, type AdapterContext, eventually } from './context.ts'

/** Concurrent requests for each way in which a request can end. */
const AT_ONCE = 8
const MANY = 1_000
/** The `maxDuration` of a slot, in milliseconds. */
const LEASE = 60_000

const FLIGHT = { name: 'flight', key: 'all', algorithm: concurrency(), coordination: 'local' } as const

/** A long timeout, because a store on a busy machine may answer late. */
const OVER_ALL = { coordination: 'leased', failMode: 'closed', storeTimeout: '30s' } as const

/** The number of free slots. */
function free({ throttlers }: AdapterClient): number {
  const parts = throttlers[0]?.peek('all').parts ?? []
  return parts.find(({ policy }) => policy?.name === 'flight')?.remaining ?? Number.NaN
}

function taken(client: AdapterClient, count: number, limit = MANY): Promise<void> {
  return eventually(() => free(client) === limit - count, `${count} slots are held`)
}

/** Opens a request whose response never ends. `leave` disconnects its client. */
export async function hang(client: AdapterClient): Promise<{ leave: () => void }> {
  const request = client.open('/slow')
  request.on('error', () => {})
  const answered = new Promise((resolve) => request.once('response', (response) => resolve(response.on('error', () => {}))))
  request.end()
  await answered
  return { leave: () => request.destroy() }
}

/** Sends bytes unchanged. Resolves once a reply arrives or the connection is closed. */
async function raw(client: AdapterClient, bytes: string): Promise<Socket> {
  const socket = connect(client.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(bytes)
  await new Promise((resolve) => {
    socket.once('data', resolve)
    socket.once('close', resolve)
  })
  return socket
}

/** The ways in which a request can end. */
const WAYS: Readonly<Record<string, (client: AdapterClient) => Promise<unknown>>> = {
  'an answer': (client) => client.send('/'),
  'an answer to HEAD': (client) => client.send('/', { method: 'HEAD' }),
  'no route': (client) => client.send('/nowhere'),
  'an error': (client) => client.send('/throw'),
  'an answer that failed': (client) => client.send('/status/500'),
  'no content': (client) => client.send('/status/204'),
  'an answer in pieces': (client) => client.send('/stream'),
  'a late answer': (client) => client.send('/busy/2'),
  'a client that leaves in the middle of an answer': async (client) => (await hang(client)).leave(),
  'a client that leaves before the answer': async (client) => {
    let over = false
    const request = client.open('/busy/30')
    const end = () => void (over = true)
    request.on('error', end).on('response', end)
    request.end()
    while (!over && free(client) === MANY) await new Promise((resolve) => setImmediate(resolve))
    request.destroy()
  },
  'an upload that is broken off': async (client) => {
    const request = client.open('/status/200', { method: 'POST', headers: { 'content-length': '100000' } })
    request.on('error', () => {})
    request.write('a piece')
    await new Promise((resolve) => setImmediate(resolve))
    request.destroy()
  },
  'an upload that is announced, and does not come': async (client) => {
    const expects = 'POST /status/200 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n'
    const socket = await raw(client, expects)
    socket.destroy()
  },
  'an upload that is no HTTP': async (client) => {
    const chunked = 'POST /status/200 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n'
    const socket = await raw(client, chunked)
    socket.destroy()
  },
  'a client that closes its side and waits': async (client) => {
    const socket = connect({ port: client.port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {}).resume()
    socket.end('GET /busy/2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await new Promise((resolve) => socket.once('close', resolve))
  },
  'an old client': async (client) => {
    const socket = await raw(client, 'GET /stream HTTP/1.0\r\n\r\n')
    socket.destroy()
  },
  'a client that is reset in the middle of an answer': async (client) => {
    const socket = await raw(client, 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.resetAndDestroy()
  },
  'a connection that is upgraded': async (client) => {
    const socket = await raw(client, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.destroy()
  },
  'pipelined requests whose client leaves': async (client) => {
    const one = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
    const socket = await raw(client, one('/slow') + one('/').repeat(5))
    socket.destroy()
  },
  'pipelined requests': async (client) => {
    const socket = await raw(client, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5))
    socket.destroy()
  },
}

function start(context: AdapterContext, options: object): Promise<AdapterClient> {
  return context.start({ ...FLIGHT, ...options })
}

/** Requests in flight (`concurrency()`). */
export const inFlightCases: readonly AdapterCase[] = [
  {
    title: 'lets at most so many requests in at once, tells no time to come again, and goes on when one has ended',
    async run(context) {
      const client = await start(context, { limit: 2 })
      const first = await hang(client)
      await hang(client)
      const rejected = await client.send('/', { headers: { accept: 'application/json' } })
      assert.equal(rejected.status, 429)
      assert.equal(rejected.headers['retry-after'], undefined)
      assert.equal(rejected.headers['ratelimit-policy'], '"flight";q=2;qu="concurrent-requests"')
      assert.equal(rejected.headers['ratelimit'], '"flight";r=0')
      const problem = JSON.parse(rejected.body)
      assert.match(problem.detail, /at the same time/)
      assert.deepEqual(problem['violated-policies'], ['flight'])
      first.leave()
      await taken(client, 1, 2)
      const { status, headers } = await client.send('/')
      assert.deepEqual([status, headers['ratelimit']], [200, '"flight";r=0'])
    },
  },
  {
    title: 'holds no slot after a request has ended, however it ended',
    async run(context) {
      const client = await start(context, { limit: MANY })
      for (const [way, go] of Object.entries(WAYS)) {
        for (let i = 0; i < AT_ONCE; i++) await go(client)
        await eventually(() => free(client) === MANY, `no slot is held after ${way}`)
        await Promise.all(Array.from({ length: AT_ONCE }, () => go(client)))
        await eventually(() => free(client) === MANY, `no slot is held after ${way}, ${AT_ONCE} at once`)
      }
      await Promise.all(Object.values(WAYS).map((go) => go(client)))
      await eventually(() => free(client) === MANY, 'no slot is held after all of them at once')
      assert.deepEqual(client.warnings, [])
    },
  },
  {
    title: 'lets at most so many in at once at two nodes together, and goes on at one when a request has ended at the other',
    needs: 'store',
    async run(context) {
      const nodes = [await start(context, { ...OVER_ALL, limit: 3 }), await start(context, { ...OVER_ALL, limit: 3 })]
      const [one, two] = nodes as [AdapterClient, AdapterClient]
      const held = [await hang(one), await hang(two), await hang(one)]
      for (const node of nodes) {
        const rejected = await node.send('/')
        assert.equal(rejected.status, 429)
        assert.equal(rejected.headers['retry-after'], undefined)
        assert.equal(rejected.headers['ratelimit-policy'], '"flight";q=3;qu="concurrent-requests"')
        assert.equal(rejected.headers['ratelimit'], '"flight";r=0')
      }
      held[0]?.leave()
      await eventually(async () => (await two.send('/')).status === 200, 'a slot comes free at the other node')
      for (const { leave } of held) leave()
      for (const node of nodes) {
        await eventually(async () => (await one.throttlers[0]?.usage('all'))?.[0]?.used === 0, 'all have ended')
        const again = [await hang(node), await hang(node), await hang(node)]
        await taken(node, 3, 3)
        for (const { leave } of again) leave()
      }
    },
  },
  {
    title: 'holds a request, where the policy has a delay, until another one has ended at another node',
    needs: 'store',
    async run(context) {
      const waits = { ...OVER_ALL, limit: 1, delay: '20s' }
      const [one, two] = [await start(context, waits), await start(context, waits)] as const
      const first = await hang(one)
      let status = 0
      const second = two.send('/').then((answer) => {
        status = answer.status
      })
      await eventually(() => two.throttlers[0]?.waiting === 1, 'the other waits')
      assert.equal(status, 0)
      first.leave()
      await second
      assert.equal(status, 200)
      await taken(two, 0, 1)
    },
  },
  {
    title: 'holds no slot of the cluster after a request has ended, however it ended',
    needs: 'store',
    async run(context) {
      const client = await start(context, { ...OVER_ALL, limit: MANY })
      for (const [way, go] of Object.entries(WAYS)) {
        await Promise.all(Array.from({ length: AT_ONCE }, () => go(client)))
        await eventually(() => free(client) === MANY, `no slot is held after ${way}`)
      }
      const [usage] = (await client.throttlers[0]?.usage('all')) ?? []
      assert.equal(usage?.used, 0)
      assert.deepEqual(client.warnings, [])
    },
  },
  {
    title: 'holds as many slots as requests are in flight, and gives each of them back once',
    async run(context) {
      const client = await start(context, { limit: MANY })
      const held = [await hang(client), await hang(client), await hang(client)]
      await taken(client, 3)
      for (const [left, { leave }] of held.entries()) {
        leave()
        await taken(client, 2 - left)
        await client.send('/')
        await taken(client, 2 - left)
      }
    },
  },
  {
    title: 'counts a request once in several places, and holds no slot for one that another level rejects',
    async run(context) {
      const rate = { name: 'rate', ...context.limit(3), key: 'all', coordination: 'local' }
      const client = await context.start({ policies: [{ ...FLIGHT, limit: 5 }, rate] })
      assert.deepEqual(await client.statuses(['/', '/', '/', '/', '/', '/']), [200, 200, 200, 429, 429, 429])
      await taken(client, 0, 5)
      const own = await start(context, { limit: 5 })
      const throttler = own.throttlers[0] as object
      const twice = await context.startWith([throttler, throttler].map((one) => ({ throttler: one })))
      const { leave } = await hang(twice)
      assert.equal(free(twice), 4)
      leave()
      await taken(twice, 0, 5)
    },
  },
  {
    title: 'refunds what a failed request took beside its slot',
    async run(context) {
      const rate = { name: 'rate', ...context.limit(3), key: 'all', coordination: 'local' }
      const client = await context.start({ policies: [rate, { ...FLIGHT, limit: 2 }], skipFailedRequests: true })
      const { leave } = await hang(client)
      for (let i = 0; i < 5; i++) {
        await client.send('/status/500')
        await eventually(() => client.throttlers[0]?.peek('all').parts[0]?.remaining === 2, 'it is refunded')
        await taken(client, 1, 2)
      }
      leave()
      await taken(client, 0, 2)
    },
  },
  {
    title: 'rejects nobody in a dry run of slots',
    async run(context) {
      const throttled: unknown[] = []
      const client = await start(context, {
        limit: 1,
        dryRun: true,
        onRejected: (_: unknown, decision: unknown) => throttled.push(decision),
      })
      const { leave } = await hang(client)
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 200])
      assert.equal(throttled.length, 3)
      assert.equal(free(client), 0)
      leave()
      await taken(client, 0, 1)
    },
  },
  {
    title: 'frees the slot of a request that is never answered when its lease is over',
    needs: 'clock',
    async run(context) {
      const client = await start(context, { limit: 1, algorithm: concurrency({ maxDuration: LEASE }) })
      const { leave } = await hang(client)
      await context.pass(LEASE - 1)
      assert.equal((await client.send('/')).status, 429)
      await context.pass(LEASE / 10)
      assert.equal((await client.send('/')).status, 200)
      assert.deepEqual(
        client.warnings.map(({ code }) => code),
        ['WEIR_WARN_SLOT_EXPIRED'],
      )
      const other = await hang(client)
      leave()
      await eventually(async () => (await client.connections()) <= 2, 'its client has left')
      assert.equal(free(client), 0)
      other.leave()
      await taken(client, 0, 1)
    },
  },
  {
    title: 'gives back the slot of a request whose client goes away while it is held',
    needs: 'clock',
    async run(context) {
      const pace = { name: 'pace', key: 'all', limit: 1, interval: '1s', coordination: 'local', algorithm: leakyBucket({ burst: 3 }) }
      const client = await context.start({ policies: [pace, { ...FLIGHT, limit: 2 }] })
      await client.send('/')
      await taken(client, 0, 2)
      const gone = client.open('/')
      gone.on('error', () => {})
      gone.end()
      await eventually(() => client.throttlers[0]?.waiting === 1, 'it is held')
      assert.equal(free(client), 1)
      gone.destroy()
      await taken(client, 0, 2)
    },
  },
]
