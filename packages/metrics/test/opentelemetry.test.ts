import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { createThrottler, leakyBucket } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { follow } from '@weir/core/rules'
import { manualClock } from '@weir/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { METRICS } from '../src/index.ts'
import { openTelemetryMetrics } from '../src/opentelemetry.ts'
import { busyThrottler } from './throttlers.ts'

function collector() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader] })
  onTestFinished(() => provider.shutdown())
  return {
    meter: provider.getMeter('test'),
    async collect() {
      exporter.reset()
      await reader.forceFlush()
      return new Map(
        exporter
          .getMetrics()
          .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics.map((one) => [one.descriptor.name, one]))),
      )
    },
  }
}

test('a reader collects every metric, with unit, description, attributes and values', async () => {
  const { meter, collect } = collector()
  const throttler = await busyThrottler()
  openTelemetryMetrics(throttler, { meter })
  const clock = manualClock()
  const paced = createThrottler({
    policies: [{ name: 'pace', limit: 100, interval: '1s', algorithm: leakyBucket(), coordination: 'local' }],
    clock,
  })
  onTestFinished(() => paced.close())
  openTelemetryMetrics(paced, { meter })
  const policies = [{ name: 'pace', key: 'all', limit: 100, interval: '1s', algorithm: 'leakyBucket', coordination: 'local' }]
  const source = { name: 'the test', interval: 60_000, read: async () => JSON.stringify({ version: 7, policies }) }
  const rules = follow(paced, source, { algorithms: { leakyBucket } })
  onTestFinished(() => rules.close())
  await rules.ready
  const acquired = Promise.all([1, 2, 3].map(() => paced.acquire('secret-key')))
  // Waits until the queue's code is loaded, which takes real time. Afterwards the clock may advance.
  await paced.acquire('secret-key', { timeout: 1 }).catch(() => {})
  await clock.advance(100)
  await acquired
  await expect.poll(async () => (await collect()).size, { timeout: 5_000 }).toBe(METRICS.length)
  const collected = await collect()
  for (const { name, unit, description, labels } of METRICS) {
    const metric = collected.get(name)
    expect(metric?.descriptor, name).toMatchObject({ unit, description })
    for (const { attributes } of metric?.dataPoints ?? [])
      expect(Object.keys(attributes).sort()).toEqual(labels.map((label) => `weir.${label}`).sort())
  }
  const value = (name: string, attributes: object) =>
    collected.get(name)?.dataPoints.find((point) => Object.entries(attributes).every(([key, text]) => point.attributes[key] === text))
      ?.value
  expect(value('weir.allowed', { 'weir.policy': 'user' })).toBe(10)
  expect(value('weir.rejected', { 'weir.policy': 'user', 'weir.reason': 'limit', 'weir.source': 'local' })).toBe(15)
  expect(value('weir.keys.blocked', { 'weir.policy': 'user' })).toBe(1)
  expect(value('weir.storeDown', {})).toBe(0)
  expect(value('weir.rules.version', {})).toBe(7)
  expect(value('weir.rules.rejected', {})).toBe(0)
  // The first of the three requests passed immediately, so it has no wait.
  expect(value('weir.wait.duration', { 'weir.policy': 'pace' })).toMatchObject({ count: 2 })
  expect(JSON.stringify([...collected.values()].map(({ dataPoints }) => dataPoints))).not.toContain('secret-key')
})

test('attributes of the caller, and an end', async () => {
  const { meter, collect } = collector()
  const throttler = await busyThrottler()
  const stop = openTelemetryMetrics(throttler, { meter, attributes: { app: 'gateway' } })
  const points = (await collect()).get('weir.allowed')?.dataPoints
  expect(points?.map(({ attributes }) => attributes['app'])).toEqual(['gateway', 'gateway'])
  stop()
  const read = vi.spyOn(adapterOf(throttler), 'inspected', 'get')
  await collect()
  expect(read).not.toHaveBeenCalled()
})

test('without an SDK it costs nothing and breaks nothing', async () => {
  const unread = new Proxy({}, { get: () => expect.unreachable() })
  expect(() => openTelemetryMetrics({ on: () => () => {}, [Symbol.for('weir.adapter')]: { inspected: unread } } as never)()).not.toThrow()
})

test('units are those of UCUM: seconds, the unity, or annotations', () => {
  for (const { name, unit } of METRICS) expect(unit, name).toMatch(/^(s|1|\{[a-z]+\})$/)
})

test('a meter that fails once is given everything at the next attempt, and once', async () => {
  const { meter, collect } = collector()
  const throttler = await busyThrottler()
  const failing = vi.spyOn(meter, 'createHistogram').mockImplementationOnce(() => {
    throw new Error('once')
  })
  expect(() => openTelemetryMetrics(throttler, { meter })).toThrow('once')
  expect((await collect()).size).toBe(0)
  failing.mockRestore()
  openTelemetryMetrics(throttler, { meter })
  expect((await collect()).get('weir.allowed')?.dataPoints.map(({ value }) => value)).toContain(10)
})
