import { createThrottler, fixedWindow, type PolicyOptions, slidingWindow, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { PATIENT } from './fixtures.ts'

/** Steps the time that the scripts read, because the server's clock can't be stepped. */
vi.mock('../src/scripts/prelude.ts', async (original) => {
  const prelude = await original<typeof import('../src/scripts/prelude.ts')>()
  const [before, after] = prelude.PRELUDE.split("local clock = call('TIME')\n")
  if (after === undefined) throw new Error('The scripts read the clock in another way now.')
  const step = "clock[1] = clock[1] + (tonumber(call('GET', 'clock-step')) or 0)\n"
  return { ...prelude, PRELUDE: `${before}local clock = call('TIME')\n${step}${after}` }
})

const HOUR = 3_600
const LIMIT = 100
const INTERVAL = 2_000

let server: RedisServer
let namespaces = 0
const open: Throttler[] = []

beforeAll(async () => {
  server = await RedisServer.start()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((throttler) => throttler.close()))
  await server.command('flushall')
})
afterAll(() => server.stop())

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function start(namespace: string, policy: PolicyOptions): Promise<Throttler> {
  const throttler = createThrottler({
    policies: [policy],
    heartbeat: 200,
    store: redisStore({ port: server.port }, { ...PATIENT, namespace }),
  }).start()
  open.push(throttler)
  await vi.waitFor(() => expect(throttler.state).toBe('synced'), 10_000)
  return throttler
}

test.each([
  ['fixed', -HOUR],
  ['sliding', HOUR],
] as const)(
  'with a %s window and a step of the server’s clock by %d s nodes share their limit, and so does one that starts later',
  async (window, seconds) => {
    const namespace = `step-${++namespaces}`
    const policy = { limit: LIMIT, interval: INTERVAL, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }
    const nodes = [await start(namespace, policy), await start(namespace, policy)]
    await server.command('set', 'clock-step', String(seconds))
    nodes.push(await start(namespace, policy))
    // The others may report the step only after it has started. It joins them, or they join it, with the next heartbeats.
    await vi.waitFor(() => {
      expect(nodes.map((node) => snapshot(node).nodes)).toEqual([3, 3, 3])
      const offsets = nodes.map((node) => snapshot(node).sync?.clockOffsetMs ?? Number.NaN)
      expect(Math.max(...offsets) - Math.min(...offsets)).toBeLessThan(500)
    }, 10_000)
    const begun = performance.now()
    let allowed = 0
    while (performance.now() - begun < 2.5 * INTERVAL) {
      for (const node of nodes) if (node.check('key').allowed) allowed++
      // Each process gets requests at the rate of the limit. More would be allowed only while a reply takes long on a busy machine.
      await sleep(INTERVAL / LIMIT)
    }
    const intervals = (performance.now() - begun) / INTERVAL
    // A part of an interval at each end, and a tenth while time is slewed. A process that counted alone would allow twice as much.
    expect(allowed).toBeLessThan(LIMIT * (1.1 * intervals + 1) * 1.2)
    expect(allowed).toBeGreaterThan(LIMIT * (0.9 * intervals - 1) * 0.8)
  },
)

test.each([HOUR, -HOUR])('a step of the server’s clock by %d s neither lengthens nor ends a block', async (seconds) => {
  const namespace = `step-${++namespaces}`
  const policy = { limit: LIMIT, interval: INTERVAL }
  const [first, second] = [await start(namespace, policy), await start(namespace, policy)]
  const ends = performance.now() + 6_000
  first.block('key', 6_000)
  await vi.waitFor(() => expect(second.check('key').allowed).toBe(false), 5_000)
  await server.command('set', 'clock-step', String(seconds))
  // Causes syncs of the key's shard by other keys.
  for (let i = 0; i < 16; i++) {
    first.check(`other-${i}`)
    second.check(`other-${i}`)
    await sleep(50)
  }
  const third = await start(namespace, policy)
  const left = ends - performance.now()
  for (const node of [first, second]) {
    const { allowed, retryAfterMs } = node.check('key')
    expect(allowed).toBe(false)
    expect(Math.abs(retryAfterMs - left)).toBeLessThan(1_500)
  }
  // The server lost nothing, so a process that starts receives the block too.
  expect(Math.abs(third.peek('key').retryAfterMs - left)).toBeLessThan(1_500)
  const later = performance.now() + 3_000
  first.block('later', 3_000)
  await vi.waitFor(() => expect(third.check('later').allowed).toBe(false), 5_000)
  expect(Math.abs(third.check('later').retryAfterMs - (later - performance.now()))).toBeLessThan(1_500)
})
