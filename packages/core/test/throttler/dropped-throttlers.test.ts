import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { concurrency, leakyBucket, slidingWindow, tokenBucket } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { Throttler } from '../../src/throttler/throttler.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const POLICIES = {
  background: { limit: 5, interval: '1m' },
  spans: { limit: 5, interval: '1m', coordination: 'periodic' },
  'sliding window': { limit: 5, interval: '1m', algorithm: slidingWindow() },
  'token bucket': { limit: 5, interval: '1m', algorithm: tokenBucket() },
  leases: { limit: 5, interval: '1m', coordination: 'leased' },
  slots: { limit: 5, algorithm: concurrency({ maxDuration: '1m' }), coordination: 'leased' },
  central: { limit: 5, interval: '1m', coordination: 'central' },
  'leaky bucket': { limit: 5, interval: '1m', algorithm: leakyBucket({ burst: 2 }) },
  delayed: { limit: 5, interval: '1m', delay: '1s' },
  local: { limit: 5, interval: '1m', coordination: 'local' },
} as unknown as Record<string, AnyPolicyOptions>

/**
 * Counts the throttlers that are still in memory. The store's last answer is kept until the next heartbeat, so this takes up to some
 * seconds.
 */
async function left(refs: readonly WeakRef<object>[]): Promise<number> {
  for (const end = performance.now() + 10_000; performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    collect()
    if (refs.every((ref) => ref.deref() === undefined)) return 0
  }
  return refs.filter((ref) => ref.deref() !== undefined).length
}

test.each(Object.keys(POLICIES))('a throttler that was dropped before it started is collected, and a closed one too: %s', async (name) => {
  const store = memoryStore()
  const policy = { ...POLICIES[name], name: 'stays' } as AnyPolicyOptions
  const stays = new Throttler({ policies: [policy], store }).start()
  const made = (i: number): Throttler => new Throttler({ policies: [{ ...policy, name: `policy ${i}` } as AnyPolicyOptions], store })
  const refs: WeakRef<object>[] = []
  await (async () => {
    for (let i = 0; i < 5; i++) refs.push(new WeakRef(adapterOf(made(i)).inspected))
    for (let i = 5; i < 10; i++) {
      const throttler = made(i)
      await throttler.checkAsync('a')
      throttler.block('b', '1m')
      throttler.reset('a')
      refs.push(new WeakRef(adapterOf(throttler).inspected))
      await throttler.close()
    }
  })()
  expect(await left(refs)).toBe(0)
  expect(stays.state).toMatch(/synced|connecting/)
  await stays.close()
})
