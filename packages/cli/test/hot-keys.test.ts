import { createThrottler, memoryStore, systemClock, type Throttler, type ThrottlerOptions, tokenBucket } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { expect, onTestFinished, test } from 'vitest'
import { StoreWatch } from '../src/cluster/store-watch.ts'

const POLICIES = [
  { name: 'bucket', limit: 20, interval: '1h', algorithm: tokenBucket({ burst: 20 }) },
  { name: 'central', limit: 20, interval: '1h', coordination: 'central', storeTimeout: '10s' },
  { name: 'local', limit: 20, interval: '1h', coordination: 'local' },
  { name: 'window', limit: 20, interval: '1h' },
] as const

test('a full key has used what clients got, whatever counts it', { timeout: 30_000 }, async () => {
  const hub = new Hub(systemClock)
  const allowed: Record<string, number> = {}
  for (const policy of POLICIES) {
    const throttlers = [0, 1, 2].map(() => {
      const options = { store: memoryStore(hub), policies: [policy], heartbeat: 100 } as ThrottlerOptions<never>
      const throttler = createThrottler(options) as unknown as Throttler
      onTestFinished(() => throttler.close())
      return throttler.start()
    })
    allowed[policy.name] = 0
    for (let i = 0; i < 30; i++)
      for (const throttler of throttlers) if ((await throttler.checkAsync('mallory')).allowed) (allowed[policy.name] as number)++
  }
  const watch = new StoreWatch(memoryStore(hub))
  onTestFinished(() => watch.close())
  const hot = async () => {
    const rows = (await watch.look()).hot.map(({ policy, used, debt, limit }) => [
      policy,
      [Math.round(used), Math.round(used + debt), limit],
    ])
    return Object.fromEntries(rows)
  }
  const { bucket, central, window } = allowed
  // Units drain from the bucket meanwhile, one in three minutes.
  await expect.poll(hot, { timeout: 20_000 }).toEqual({
    bucket: [20, bucket, 20],
    central: [20, central, 20],
    local: [20, 20, 20],
    window: [window, window, 20],
  })
  expect(central).toBe(20)
})
