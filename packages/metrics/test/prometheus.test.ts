import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createThrottler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { manualClock } from '@weir/testing'
import parse from 'parse-prometheus-text-format'
import { Gauge, Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { METRICS } from '../src/index.ts'
import { prometheusMetrics } from '../src/prometheus.ts'
import { awayStore, busyThrottler } from './throttlers.ts'

type Families = Map<string, ReturnType<typeof parse>[number]>

/** Scrapes over HTTP like Prometheus, and reads the text with an independent parser. */
async function scrape(register: Registry): Promise<Families> {
  const server = createServer(async (_request, response) => {
    response.setHeader('Content-Type', register.contentType)
    response.end(await register.metrics())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
  })
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`)
  expect(response.headers.get('content-type')).toContain('text/plain')
  const text = await response.text()
  expect(text).not.toContain('secret-key')
  return new Map(parse(text).map((family) => [family.name, family]))
}

const sample = (families: Families, name: string, labels: Record<string, string>) =>
  families.get(name)?.metrics.find((one) => Object.entries(labels).every(([label, value]) => one.labels?.[label] === value))?.value

test('a scrape holds every metric, with type, help, labels and values', async () => {
  const register = new Registry()
  prometheusMetrics(await busyThrottler(), { register })
  const families = await scrape(register)
  for (const { prometheus, kind, description, labels } of METRICS) {
    const family = families.get(prometheus)
    expect(family, prometheus).toBeDefined()
    expect(family?.type).toBe(kind === 'counter' ? 'COUNTER' : kind === 'histogram' ? 'HISTOGRAM' : 'GAUGE')
    expect(family?.help).toBe(description)
    for (const one of family?.metrics ?? [])
      if (kind !== 'histogram') expect(Object.keys(one.labels ?? {}).sort()).toEqual([...labels].sort())
  }
  expect([...families.keys()].sort()).toEqual(METRICS.map(({ prometheus }) => prometheus).sort())
  expect(sample(families, 'weir_allowed_units_total', { policy: 'user' })).toBe('10')
  expect(sample(families, 'weir_rejected_requests_total', { policy: 'user', reason: 'limit', source: 'local' })).toBe('15')
  expect(sample(families, 'weir_blocked_keys', { policy: 'user' })).toBe('1')
  // Both policies count each request, so their units add up to more than the requests.
  expect(sample(families, 'weir_requests_total', { result: 'allowed' })).toBe('10')
  expect(sample(families, 'weir_requests_total', { result: 'rejected' })).toBe('15')
  expect(sample(families, 'weir_blocks_total', { policy: 'user', cause: 'manual' })).toBe('1')
  expect(sample(families, 'weir_nodes', {})).toBe('1')
  expect(sample(families, 'weir_store_down', {})).toBe('0')
  await expect
    .poll(async () => Number((await scrape(register)).get('weir_sync_duration_seconds')?.metrics[0]?.count), {
      timeout: 5_000,
      interval: 200,
    })
    .toBeGreaterThan(0)
})

test('sums grow from scrape to scrape, and end when they are told to', async () => {
  const register = new Registry()
  const throttler = await busyThrottler()
  const stop = prometheusMetrics(throttler, { register })
  await scrape(register)
  for (let i = 0; i < 5; i++) throttler.check('other')
  expect(sample(await scrape(register), 'weir_allowed_units_total', { policy: 'user' })).toBe('15')
  stop()
  expect(sample(await scrape(register), 'weir_allowed_units_total', { policy: 'user' })).toBeUndefined()
})

test('a store that is away', async () => {
  const register = new Registry()
  const store = awayStore()
  const throttler = (await import('@weir/core')).createThrottler({ store, policies: [{ limit: 1, interval: '1m' }] })
  onTestFinished(() => throttler.close())
  prometheusMetrics(throttler, { register })
  throttler.start()
  await expect.poll(() => throttler.state).toBe('storeDown')
  const families = await scrape(register)
  expect(sample(families, 'weir_store_down', {})).toBe('1')
  expect(Number(sample(families, 'weir_sync_failures_total', { cause: 'rejected' }))).toBeGreaterThan(0)
  expect(families.get('weir_sync_since_success_seconds')?.metrics).toEqual([{ value: expect.stringMatching(/^nan$/i) }])
})

test('requests that wait, how long those waited that went, and how many did not go', async () => {
  const register = new Registry()
  const clock = manualClock()
  const throttler = createThrottler({ policies: [{ name: 'calls', limit: 2, interval: '1s', coordination: 'local' }], clock })
  onTestFinished(() => throttler.close())
  await clock.advance(1_000 - (clock.now() % 1_000))
  const stop = prometheusMetrics(throttler, { register })
  const all = Array.from({ length: 5 }, () => throttler.acquire('secret-key'))
  const late = await throttler.acquire('secret-key', { timeout: 1 }).catch(({ reason }) => reason)
  expect(late).toBe('timeout')
  await clock.advance(100)
  expect(sample(await scrape(register), 'weir_waiting_requests', { policy: 'calls' })).toBe('3')
  expect(Number(sample(await scrape(register), 'weir_longest_wait_seconds', { policy: 'calls' }))).toBeGreaterThan(0)
  await clock.advance(2_000)
  await Promise.all(all)
  const families = await scrape(register)
  expect(sample(families, 'weir_waiting_requests', { policy: 'calls' })).toBe('0')
  expect(sample(families, 'weir_wait_failures_total', { reason: 'timeout' })).toBe('1')
  expect(sample(families, 'weir_wait_failures_total', { reason: 'queue-full' })).toBe('0')
  const waited = async (what: 'count' | 'sum') =>
    Number(new RegExp(`weir_wait_duration_seconds_${what}\\{policy="calls"\\} (.*)`).exec(await register.metrics())?.[1])
  expect(await waited('count')).toBe(3)
  expect(await waited('sum')).toBeGreaterThan(0.1)
  stop()
  const others = Promise.all([1, 2, 3].map(() => throttler.acquire('other')))
  await clock.advance(1_000)
  await others
  expect(await waited('count')).toBe(3)
})

test('open reservations, their units, and how reservations ended', async () => {
  const register = new Registry()
  const clock = manualClock()
  const rule = { limit: 10_000, interval: '1h', coordination: 'local' } as const
  const throttler = createThrottler({
    policies: [
      { name: 'tokens', ...rule },
      { name: 'other', ...rule },
    ],
    clock,
  })
  onTestFinished(() => throttler.close())
  prometheusMetrics(throttler, { register })
  const [first, second] = [1, 2, 3, 4].map(() => throttler.reserve('secret-key', { cost: { tokens: 900 }, ttl: '10s' }))
  first?.settle({ tokens: 5 })
  const values = async (policy: string) => {
    const families = await scrape(register)
    const ended = ['settled', 'cancelled', 'expired'].map((outcome) => sample(families, 'weir_reservations_total', { policy, outcome }))
    return [sample(families, 'weir_open_reservations', { policy }), sample(families, 'weir_reserved_units', { policy }), ...ended]
  }
  expect(await values('tokens')).toEqual(['3', '2700', '1', '0', '0'])
  second?.cancel()
  await clock.advance(11_000)
  expect(await values('tokens')).toEqual(['0', '0', '1', '1', '2'])
  expect(await values('other')).toEqual(['0', '0', '0', '0', '0'])
})

test('several throttlers of a process, told apart by a label', async () => {
  const register = new Registry()
  prometheusMetrics(await busyThrottler(), { register, labels: { app: 'one' } })
  const second = await busyThrottler()
  prometheusMetrics(second, { register, labels: { app: 'two' } })
  second.check('more')
  const families = await scrape(register)
  expect(sample(families, 'weir_allowed_units_total', { app: 'one', policy: 'user' })).toBe('10')
  expect(sample(families, 'weir_allowed_units_total', { app: 'two', policy: 'user' })).toBe('11')
  expect(() => prometheusMetrics(second, { register })).toThrow(
    /Option "labels" has the names none, but another throttler of this registry has app\. Use the same names/,
  )
})

test('a registry that was cleared takes the metrics again', async () => {
  const register = new Registry()
  const throttler = await busyThrottler()
  prometheusMetrics(throttler, { register })
  register.clear()
  prometheusMetrics(throttler, { register })
  expect(sample(await scrape(register), 'weir_allowed_units_total', { policy: 'user' })).toBe('10')
})

/** The number of label sets in a histogram. */
async function seriesOf(register: Registry, name: string): Promise<number> {
  return ((await register.metrics()).match(new RegExp(`^${name}_count`, 'gm')) ?? []).length
}

test('policies of ever new names leave nothing behind', async () => {
  const register = new Registry()
  const rule = { limit: 2, interval: '1s', coordination: 'local' } as const
  const throttler = createThrottler<string>({ policies: [{ name: 'first', ...rule }] })
  onTestFinished(() => throttler.close())
  prometheusMetrics(throttler as never, { register })
  const waited = (policy: string) => adapterOf(throttler).inspected.emitter.emit('waited', { policy, durationMs: 10 } as never)
  for (let i = 0; i < 500; i++) {
    throttler.update([
      { name: `policy ${i}`, ...rule },
      { name: 'kept', ...rule },
    ])
    waited(`policy ${i}`)
    waited('kept')
  }
  expect(await seriesOf(register, 'weir_wait_duration_seconds')).toBe(2)
  expect(await register.metrics()).toContain('weir_wait_duration_seconds_count{policy="kept"} 500')
  expect(await register.metrics()).toContain('weir_wait_duration_seconds_count{policy="policy 499"} 1')
})

test('throttlers with ever new labels leave nothing behind', async () => {
  const register = new Registry()
  const policies = [{ name: 'calls', limit: 2, interval: '1s', coordination: 'local' }] as const
  const one = async (labels: Readonly<Record<string, string>>) => {
    const throttler = createThrottler({ policies })
    onTestFinished(() => throttler.close())
    const stop = prometheusMetrics(throttler, { register, labels })
    const { emitter } = adapterOf(throttler).inspected
    emitter.emit('waited', { policy: 'calls', durationMs: 10 } as never)
    emitter.emit('sync', { durationMs: 1, entries: 1 } as never)
    await Promise.resolve()
    return stop
  }
  await one({ tenant: 'kept', app: 'a' })
  for (let i = 0; i < 300; i++) (await one({ tenant: `tenant ${i}`, app: 'a' }))()
  await one({ app: 'a', tenant: 'last' })
  for (const name of ['weir_wait_duration_seconds', 'weir_sync_duration_seconds', 'weir_sync_batch_keys']) {
    expect(await seriesOf(register, name), name).toBe(2)
  }
})

test('a registry that has a metric of our name takes the metrics once that is gone', async () => {
  const register = new Registry()
  const theirs = new Gauge({ name: 'weir_nodes', help: 'not ours', registers: [register] })
  const throttler = await busyThrottler()
  expect(() => prometheusMetrics(throttler, { register })).toThrow(/weir_nodes has already been registered/)
  expect(register.getMetricsAsArray()).toEqual([theirs])
  register.removeSingleMetric('weir_nodes')
  prometheusMetrics(throttler, { register })
  expect(sample(await scrape(register), 'weir_allowed_units_total', { policy: 'user' })).toBe('10')
})

test('a scrape that fails once fails alone', async () => {
  const register = new Registry()
  const throttler = await busyThrottler()
  let fails = true
  const source = {
    on: throttler.on.bind(throttler) as typeof throttler.on,
    [Symbol.for('weir.adapter')]: {
      get inspected() {
        if (fails) throw new Error('once')
        return adapterOf(throttler).inspected
      },
    },
  }
  prometheusMetrics(source as never, { register })
  await expect(register.metrics()).rejects.toThrow('once')
  fails = false
  expect(sample(await scrape(register), 'weir_allowed_units_total', { policy: 'user' })).toBe('10')
})
