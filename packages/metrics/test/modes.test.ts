import { createThrottler } from '@weir/core'
import { follow } from '@weir/core/rules'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { prometheusMetrics } from '../src/prometheus.ts'

const LOCAL = { key: 'all', interval: '1h', coordination: 'local' } as const

/** The label sets and values of a metric. */
async function read(register: Registry, name: string): Promise<readonly unknown[]> {
  const metric = (await register.getMetricsAsJSON()).find((one) => one.name === name)
  return metric?.values.map(({ labels, value }) => [...Object.values(labels), value]) ?? []
}

test('each policy has its mode, and requests are counted once, as clients see them', async () => {
  const throttler = createThrottler({
    policies: [
      { ...LOCAL, name: 'client', limit: 3 },
      { ...LOCAL, name: 'all', limit: 10 },
      { ...LOCAL, name: 'tried', limit: 1, dryRun: true },
      { ...LOCAL, name: 'stricter', limit: 2, candidate: true },
    ],
  })
  onTestFinished(() => throttler.close())
  const register = new Registry()
  prometheusMetrics(throttler, { register })
  for (let i = 0; i < 5; i++) throttler.check('mallory')
  expect(await read(register, 'weir_requests_total')).toEqual([
    ['allowed', 3],
    ['rejected', 2],
  ])
  expect(await read(register, 'weir_policy_limit_units')).toEqual([
    ['client', 'enforced', 3],
    ['all', 'enforced', 10],
    ['tried', 'dry-run', 1],
    ['stricter', 'candidate', 2],
  ])
  expect(await read(register, 'weir_rejected_requests_total')).toEqual([
    ['client', 'enforced', 'limit', 'local', 2],
    ['tried', 'dry-run', 'limit', 'local', expect.any(Number)],
    ['stricter', 'candidate', 'limit', 'local', 3],
  ])
})

test('a candidate from rules has the name of its policy', async () => {
  const throttler = createThrottler<string>({ policies: [{ ...LOCAL, name: 'client', limit: 3 }] })
  onTestFinished(() => throttler.close())
  const register = new Registry()
  prometheusMetrics(throttler as never, { register })
  const document = {
    version: 1,
    policies: [{ ...LOCAL, name: 'client', limit: 3 }],
    next: { policies: [{ ...LOCAL, name: 'client', limit: 2 }] },
  }
  const rules = follow(throttler, { name: 'the test', interval: 60_000, read: async () => JSON.stringify(document) })
  onTestFinished(() => rules.close())
  await rules.ready
  expect(await read(register, 'weir_policy_limit_units')).toEqual([
    ['client', 'enforced', 3],
    ['client', 'candidate', 2],
  ])
})

test('no two policies have the same labels', async () => {
  const throttler = createThrottler({
    policies: [
      { ...LOCAL, name: 'client', limit: 1, candidate: true },
      { ...LOCAL, name: 'next:client', limit: 2, candidate: true },
      { ...LOCAL, name: 'next:all', limit: 3 },
      { ...LOCAL, name: 'all', limit: 4, dryRun: true },
    ],
  })
  onTestFinished(() => throttler.close())
  const register = new Registry()
  prometheusMetrics(throttler, { register })
  expect(await read(register, 'weir_policy_limit_units')).toEqual([
    ['client', 'candidate', 1],
    ['next:client', 'candidate', 2],
    ['next:all', 'enforced', 3],
    ['all', 'dry-run', 4],
  ])
})
