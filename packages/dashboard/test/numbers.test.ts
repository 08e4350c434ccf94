import {
  type Algorithm,
  concurrency,
  createThrottler,
  fixedWindow,
  leakyBucket,
  type PolicyOptions,
  type Store,
  slidingCounter,
  slidingLog,
  slidingWindow,
  type Throttler,
  tokenBucket,
} from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { dashboard } from '../src/index.ts'
import type { Series, View } from '../src/protocol.ts'
import { post, serve, waitFor } from './servers.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
}, 30_000)
afterAll(() => server?.stop())

let clusters = 0
/** A busy machine must not count as an outage. */
const patientStore = () => redisStore(server.url, { namespace: `numbers-${clusters}`, timeout: '10s' })
const CENTRAL = { coordination: 'central', storeTimeout: '10s' } as const

/** Two processes on one Redis, each with a server that answers 200 or 429, and a dashboard at the first one. */
async function cluster(policies: readonly PolicyOptions<never>[], store: () => Store = patientStore) {
  clusters++
  const processes = await Promise.all(
    [0, 1].map(async () => {
      const throttler = createThrottler({ policies, store: store(), heartbeat: 100 }) as Throttler
      onTestFinished(() => throttler.close())
      throttler.start()
      const { url } = await serve((request, response) => {
        void throttler.checkAsync(request.headers['x-client'] as string).then(({ allowed }) => {
          response.statusCode = allowed ? 200 : 429
          response.end()
        })
      })
      return { throttler, url }
    }),
  )
  const [first] = processes as [(typeof processes)[number]]
  const { url } = await serve(dashboard(first.throttler, { authorize: () => true, actions: true }))
  await expect.poll(() => processes.map(({ throttler }) => snapshot(throttler).nodes), { timeout: 20_000 }).toEqual([2, 2])
  /** Sends requests of a client to the processes in turn. Returns the numbers of responses. */
  const send = async (client: string, requests: number) => {
    const counted = { allowed: 0, rejected: 0 }
    for (let i = 0; i < requests; i++) {
      const { url } = processes[i % 2] as (typeof processes)[number]
      const { status } = await fetch(url, { headers: { 'x-client': client } })
      if (status === 200) counted.allowed++
      else counted.rejected++
    }
    return counted
  }
  const view = async (passes: (view: View) => boolean) => (await waitFor(`${url}/events`, passes)).view
  return { url, throttlers: processes.map(({ throttler }) => throttler), send, view }
}

const totalOf = ({ reasons }: View): number => reasons.reduce((sum, { total }) => sum + total, 0)

const ALGORITHMS: readonly (readonly [Algorithm, object?])[] = [
  [fixedWindow()],
  [slidingWindow()],
  [slidingCounter(), CENTRAL],
  [slidingLog(), CENTRAL],
  [tokenBucket({ burst: 20 })],
  [leakyBucket({ burst: 19, immediate: 19 })],
]

async function countsAsClientsDo(algorithm: Algorithm, options?: object): Promise<void> {
  const { id } = algorithm
  // With the default failMode, processes decide by share while the store of a busy machine is silent, and may allow less than the limit.
  const { send, view } = await cluster([{ limit: 20, interval: '10h', algorithm, failMode: 'closed', ...options } as PolicyOptions<never>])
  let counted: { allowed: number; rejected: number } | undefined
  // The page is open during the requests, so that there are rates.
  const viewed = view(
    (one) =>
      counted !== undefined &&
      one.reported === 2 &&
      totalOf(one) === counted.rejected &&
      one.limited[0]?.total === counted.rejected &&
      one.policies[0]?.unsynced === 0 &&
      one.point[2] !== null,
  )
  const sent = send('mallory', 60).then((numbers) => (counted = numbers))
  const [{ allowed, rejected }, seen] = await Promise.all([sent, viewed])
  expect(allowed, id).toBeGreaterThanOrEqual(20)
  expect(rejected, id).toBeGreaterThan(0)
  expect(seen.nodeCount, id).toBe(2)
  const [top] = seen.top
  expect(top, id).toMatchObject({ policy: 'default', key: 'mallory', limit: 20 })
  // A bucket's level is never above its size. The rest is debt.
  expect(top?.used, id).toBeCloseTo(id.includes('bucket') ? 20 : allowed, 0)
  expect(top?.debt, id).toBeCloseTo(id.includes('bucket') ? allowed - 20 : 0, 0)
  expect(seen.policies[0], id).toMatchObject({ mode: 'enforced', blocked: 0, atLimit: 1, capacity: 20 })
  expect(seen.policies[0]?.busiest[0], id).toBeCloseTo(allowed, 0)
  expect(seen.limited, id).toEqual([
    expect.objectContaining({ key: 'mallory', mode: 'enforced', reason: 'limit', lastMinute: rejected, processes: 2 }),
  ])
  // Cards and charts have the same rates.
  const sum = (read: (node: View['nodes'][number]) => number) => seen.nodes.reduce((total, node) => total + read(node), 0)
  expect(seen.point.slice(1, 3), id).toEqual([sum(({ allowedRate }) => allowedRate), sum(({ rejectedRate }) => rejectedRate)])
  expect(seen.point[2], id).toBeGreaterThan(0)
  expect(seen.policies[0]?.rejectedRate, id).toBeCloseTo(seen.point[2] as number)
}

test('with each algorithm the view shows the numbers that clients counted', { timeout: 60_000 }, async () => {
  await Promise.all(ALGORITHMS.map(([algorithm, options]) => countsAsClientsDo(algorithm, options)))
})

test('with concurrency() the view shows the requests in flight', { timeout: 20_000 }, async () => {
  const { throttlers, view } = await cluster([
    { name: 'jobs', limit: 3, algorithm: concurrency({ maxDuration: '1m' }), coordination: 'leased', storeTimeout: '10s' } as never,
  ])
  const decisions = await Promise.all([0, 1, 0, 1, 0].map((i) => (throttlers[i] as Throttler).checkAsync('a')))
  expect(decisions.some(({ allowed }) => allowed)).toBe(true)
  const { length: inFlight } = decisions.filter(({ allowed }) => allowed)
  const seen = await view(({ policies, limited }) => policies[0]?.inFlight === inFlight && limited[0]?.total === 5 - inFlight)
  expect(seen.top[0]).toMatchObject({ key: 'a', used: inFlight, limit: 3, debt: 0 })
})

test('several policies, a dry run and a candidate count each request once', { timeout: 20_000 }, async () => {
  const { send, view, url } = await cluster([
    { name: 'short', limit: 5, interval: '10h', ...CENTRAL },
    { name: 'wide', limit: 1_000, interval: '10h' },
    { name: 'dry', limit: 3, interval: '10h', dryRun: true },
    { name: 'next:short', limit: 2, interval: '10h', candidate: true },
  ])
  await view(({ reported }) => reported === 2)
  const counted = await send('a', 12)
  expect(counted).toEqual({ allowed: 5, rejected: 7 })
  const seen = await view((one) => totalOf(one) === 7 && one.limited.length === 3 && one.judged.policies[0]?.enforcedRejected === 7)
  expect(seen.reasons).toEqual([expect.objectContaining({ reason: 'limit', total: 7 })])
  expect(Object.fromEntries(seen.policies.map(({ name, mode }) => [name, mode]))).toEqual({
    short: 'enforced',
    wide: 'enforced',
    dry: 'dry-run',
    'next:short': 'candidate',
  })
  expect(seen.limited.filter(({ mode }) => mode === 'enforced')).toEqual([expect.objectContaining({ policy: 'short', key: 'a', total: 7 })])
  expect(seen.limited.map(({ mode }) => mode).sort()).toEqual(['candidate', 'dry-run', 'enforced'])
  const [judged] = seen.judged.policies
  expect(judged?.name).toBe('short')
  // Each process judges by its own counts until it has synced.
  expect(judged?.rejected).toBeGreaterThanOrEqual(8)
  expect((judged?.allowed ?? 0) + (judged?.rejected ?? 0)).toBe(12)
  const series = async (body: object) => (await (await post(`${url}/series`, { key: '', ...body })).json()) as Series
  expect((await series({ policy: 'short' })).points.length).toBeGreaterThan(0)
  expect(await series({ policy: 'unknown' })).toEqual({ points: [] })
})

test('a key is either at its limit or blocked', { timeout: 20_000 }, async () => {
  const { send, view, throttlers } = await cluster([{ name: 'login', limit: 2, interval: '10h', cooldown: '1s', ...CENTRAL }])
  await send('a', 2)
  for (let i = 0; i < 3; i++) await throttlers[0]?.checkAsync('b')
  throttlers[0]?.block('c', '1h')
  const seen = await view(({ policies }) => policies[0]?.blocked === 2 && policies[0].atLimit === 1)
  expect(seen.policies[0]).toMatchObject({ atLimit: 1, blocked: 2 })
  expect(seen.blocked.map(({ key, untilIntervalEnd }) => [key, untilIntervalEnd]).sort()).toEqual([
    ['b', true],
    ['c', false],
  ])
  const [block] = seen.log.filter(({ text }) => text.includes('exceeded its limit'))
  expect(block).toMatchObject({ kind: 'blocked', mode: 'enforced', process: seen.nodes.find(({ self }) => self)?.label })
  expect(block?.text).toContain('(until the interval ends), exceeded its limit')
})

test('in an outage rates and round trips are unknown, and no count is lost', { timeout: 20_000 }, async () => {
  const own = await RedisServer.start()
  onTestFinished(() => own.stop())
  const { send, view } = await cluster([{ limit: 20, interval: '10h' }], () => redisStore(own.url))
  const before = await view(({ point, reported }) => reported === 2 && point[1] !== null)
  expect(before.outages).toEqual([])
  expect(before.point[3]).toBeGreaterThan(0)
  const first = await send('a', 4)
  await own.kill()
  const during = await view(({ state }) => state === 'storeDown')
  expect(during.point.slice(1)).toEqual([null, null, null])
  expect(during.outages).toEqual([[expect.any(Number), null]])
  const second = await send('a', 60)
  await own.restart()
  const after = await view(
    (one) =>
      one.state === 'synced' &&
      one.point[1] !== null &&
      one.reported === 2 &&
      totalOf(one) === second.rejected &&
      one.policies[0]?.unsynced === 0,
  )
  expect(after.outages).toEqual([[expect.any(Number), expect.any(Number)]])
  expect(after.top[0]?.used).toBe(first.allowed + second.allowed)
})
