import {
  type Algorithm,
  createThrottler,
  fixedWindow,
  leakyBucket,
  memoryStore,
  slidingCounter,
  slidingLog,
  slidingWindow,
  systemClock,
  tokenBucket,
} from '@weir/core'
import { Hub } from '@weir/core/memory'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { prometheusMetrics } from '../src/prometheus.ts'

/** Units that a key may use at once after rest, and how many of eight requests pass. A cold bucket with warm-up charges more for each. */
const ROWS: readonly [name: string, algorithm: Algorithm, capacity: number, allowed: number][] = [
  ['fixed', fixedWindow(), 5, 5],
  ['first request', fixedWindow({ start: 'first-request' }), 5, 5],
  ['sliding', slidingWindow(), 5, 5],
  ['counter', slidingCounter(), 5, 5],
  ['log', slidingLog(), 5, 5],
  ['tokens', tokenBucket(), 5, 5],
  ['tokens, burst', tokenBucket({ burst: 3 }), 3, 3],
  ['tokens, large burst', tokenBucket({ burst: 7 }), 7, 7],
  ['tokens, warm-up', tokenBucket({ warmUp: '4h', burst: 4 }), 4, 2],
  ['leaky', leakyBucket({ burst: 2, immediate: 2 }), 3, 3],
]

test.each(['local', 'central'] as const)('every algorithm counts, rejects and tells what a key may take: %s', async (coordination) => {
  const register = new Registry()
  for (const [name, algorithm] of ROWS) {
    const policies = [
      {
        name,
        limit: 5,
        interval: '1h' as const,
        algorithm,
        coordination,
        ...(coordination === 'central' && { storeTimeout: '10s' as const }),
      },
    ]
    const throttler = createThrottler({ policies, ...(coordination === 'central' && { store: memoryStore(new Hub(systemClock)) }) })
    onTestFinished(() => throttler.close())
    for (let i = 0; i < 8; i++) await throttler.checkAsync('somebody')
    prometheusMetrics(throttler, { register, labels: { of: name } })
  }
  const families = await register.getMetricsAsJSON()
  const read = (metric: string, policy: string, reason?: string) =>
    families
      .find(({ name }) => name === metric)
      ?.values.find(({ labels }) => labels['policy'] === policy && (reason === undefined || labels['reason'] === reason))?.value
  for (const [name, , capacity, allowed] of ROWS) {
    expect({
      name,
      limit: read('weir_policy_limit_units', name),
      capacity: read('weir_policy_capacity_units', name),
      allowed: read('weir_allowed_units_total', name),
      rejected: read('weir_rejected_requests_total', name, 'limit'),
      keys: read('weir_tracked_keys', name),
    }).toEqual({ name, limit: 5, capacity, allowed, rejected: 8 - allowed, keys: 1 })
  }
})
