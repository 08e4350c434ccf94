import { describe, expect, test, vi } from 'vitest'
import type { CurvesOutcome } from '../../src/playground/runs/curves.ts'
import { run } from '../../src/playground/runs/run.ts'
import type { StreamOutcome } from '../../src/playground/runs/stream.ts'
import { readAddress } from '../../src/playground/settings/settings.ts'

vi.setConfig({ testTimeout: 60_000 })

async function curvesOf(address: string) {
  const outcome = (await run(readAddress(address))) as CurvesOutcome
  const column = (label: string) => outcome.columns.findIndex(([name]) => name === label)
  return (name: string, label: string) => outcome.rows.find((row) => row.name.startsWith(name))?.figures[column(label)] as number
}

describe('the straddling attack', () => {
  test('gets nearly twice the limit from fixed windows, and nothing from a log', async () => {
    const figure = await curvesOf('?scene=straddle&nodes=1&limit=200&load=10')
    expect(figure('fixedWindow()', 'Most in any interval')).toBe(400)
    expect(figure('slidingLog()', 'Most in any interval')).toBe(200)
    // The overshoot that a sliding window may have because it frees units early.
    expect(figure('slidingWindow()', 'Above the limit')).toBeLessThanOrEqual(0.02)
    // A bucket allows its burst, and the limit's refill in addition.
    expect(figure('tokenBucket()', 'Most in any interval')).toBeGreaterThan(300)
    expect(figure('tokenBucket()', 'Most in any interval')).toBeLessThanOrEqual(400)
  })

  test('gets exactly the limit from leases, in each of two windows', async () => {
    const figure = await curvesOf('?scene=straddle&nodes=6&limit=100&load=20&rtt=10&seed=3')
    expect(figure("fixedWindow(), 'leased'", 'Allowed in total')).toBe(200)
  })
})

test('far from the store fixed windows exceed the limit again in each interval, and buckets pay it back', async () => {
  const figure = await curvesOf('?scene=far&nodes=6&far=6&rtt=200&load=8&limit=200')
  expect(figure('fixedWindow()', 'In the long run')).toBeGreaterThan(1.2)
  expect(figure('tokenBucket({ burst: 200 })', 'In the long run')).toBeLessThanOrEqual(1.05)
  expect(figure('tokenBucket({ burst: 200, earlyDrop: true })', 'In the long run')).toBeLessThanOrEqual(1.05)
  expect(figure("fixedWindow(), 'leased'", 'Allowed in the first interval')).toBeLessThanOrEqual(1)
  expect(figure("fixedWindow(), 'leased'", 'In the long run')).toBeLessThanOrEqual(1)
})

describe('one stream', () => {
  test.each(['mixed', 'flood', 'steady', 'spikes', 'random'])('keeps to what each algorithm means: %s', async (shape) => {
    const limit = 15
    const burst = 6
    const { rows, came, bar } = (await run(readAddress(`?scene=stream&shape=${shape}&limit=${limit}&burst=${burst}`))) as StreamOutcome
    const row = (name: string) => rows.find((candidate) => candidate.name.startsWith(name)) as StreamOutcome['rows'][number]
    const all = came.reduce((sum, count) => sum + count, 0)
    expect(row('slidingLog()').mostInInterval).toBeLessThanOrEqual(limit)
    expect(row('slidingWindow()').mostInInterval).toBeLessThanOrEqual(limit + 1)
    expect(row('fixedWindow()').mostInInterval).toBeLessThanOrEqual(2 * limit)
    expect(row(`tokenBucket({ burst: ${burst} })`).mostInInterval).toBeLessThanOrEqual(limit + burst)
    // Requests leave one after the other, at the limit's rate.
    expect(row('leakyBucket').mostAtOnce).toBeLessThanOrEqual(Math.ceil((limit * bar) / 10_000) + 1)
    // Requests that wait instead of being rejected are allowed more often.
    expect(row(`tokenBucket({ burst: ${burst} }), a queue`).allowed).toBeGreaterThanOrEqual(row(`tokenBucket({ burst: ${burst} })`).allowed)
    for (const { allowed, name, longestWait } of rows) {
      expect(allowed).toBeLessThanOrEqual(all)
      if (!/leaky|queue/.test(name)) expect(longestWait).toBe(0)
    }
  })
})
