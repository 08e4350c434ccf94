import { createThrottler, memoryStore, type Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { manualClock } from '@weir/testing'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { openTelemetryMetrics } from '../src/opentelemetry.ts'
import { prometheusMetrics } from '../src/prometheus.ts'

function throttlerOf(): Throttler {
  const throttler = createThrottler({ policies: [{ limit: 10, interval: '1m' }], store: memoryStore(), clock: manualClock() })
  onTestFinished(() => {
    void throttler.close()
  })
  return throttler
}

test.each([
  ['Prometheus', prometheusMetrics],
  ['OpenTelemetry', openTelemetryMetrics],
])('%s: a middleware, a promise and nothing are no throttler', (_, metrics) => {
  for (const wrong of [() => {}, Promise.resolve(throttlerOf()), undefined, null])
    expect(() => metrics(wrong as never)).toThrow(
      /^Option "throttler" is .* Use the throttler that createThrottler\(\) returned, or middleware\.throttler\./,
    )
})

test('an option that there is not is an error, and not a registry or attributes that nobody uses', () => {
  const throttler = throttlerOf()
  expect(() => prometheusMetrics(throttler, { registry: new Registry() } as never)).toThrow(
    'Unknown option "registry". Did you mean "register"? prometheusMetrics() has: register, labels.',
  )
  expect(() => openTelemetryMetrics(throttler, { labels: { app: 'a' } } as never)).toThrow(
    'Unknown option "labels". Did you mean "attributes"? openTelemetryMetrics() has: meter, attributes.',
  )
})

test('labels that the metrics have themselves are an error', () => {
  for (const label of ['policy', 'mode', 'result', 'reason', 'source', 'cause'])
    expect(() => prometheusMetrics(throttlerOf(), { register: new Registry(), labels: { [label]: 'x' } })).toThrow(
      `Option "labels" has the name "${label}", which the metrics use themselves.`,
    )
})

test('a throttler that is added twice is heard once, until it is taken out', async () => {
  const register = new Registry()
  const throttler = throttlerOf()
  const first = prometheusMetrics(throttler, { register })
  const second = prometheusMetrics(throttler, { register })
  first()
  adapterOf(throttler).inspected.emitter.emit('sync', { durationMs: 1, entries: 1 } as never)
  const text = await register.metrics()
  expect(text).toContain('weir_sync_duration_seconds_count 1')
  expect(text).toContain('weir_allowed_units_total{policy="default",mode="enforced"} 0')
  second()
  expect(await register.metrics()).not.toContain('weir_allowed_units_total{')
})
