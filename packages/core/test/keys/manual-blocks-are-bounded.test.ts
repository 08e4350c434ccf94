import { describe, expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { scene } from '../support/nodes.ts'

// These tests compute a lot, so a busy machine needs time for them.
vi.setConfig({ testTimeout: 60_000 })

const DAY = { limit: 5, interval: '1d' } as const
/** Each pair of an algorithm and a coordination. */
const CELLS: Readonly<Record<string, AnyPolicyOptions<never>>> = {
  'fixedWindow local': { ...DAY, coordination: 'local' },
  'fixedWindow first-request local': { ...DAY, algorithm: fixedWindow({ start: 'first-request' }), coordination: 'local' },
  'slidingWindow local': { ...DAY, algorithm: slidingWindow(), coordination: 'local' },
  'slidingCounter local': { ...DAY, algorithm: slidingCounter(), coordination: 'local' },
  'slidingLog local': { ...DAY, algorithm: slidingLog(), coordination: 'local' },
  'tokenBucket local': { ...DAY, algorithm: tokenBucket(), coordination: 'local' },
  'leakyBucket local': { ...DAY, algorithm: leakyBucket({ burst: 2 }), coordination: 'local' },
  'concurrency local': { limit: 5, algorithm: concurrency({ maxDuration: '1m' }), coordination: 'local' },
  'fixedWindow background': { ...DAY, coordination: 'background' },
  'slidingWindow background': { ...DAY, algorithm: slidingWindow(), coordination: 'background' },
  'tokenBucket background': { ...DAY, algorithm: tokenBucket(), coordination: 'background' },
  'leakyBucket background': { ...DAY, algorithm: leakyBucket({ burst: 2 }), coordination: 'background' },
  'fixedWindow spans': { ...DAY, coordination: 'periodic' },
  'slidingCounter spans': { ...DAY, algorithm: slidingCounter(), coordination: 'periodic' },
  'fixedWindow leases': { ...DAY, coordination: 'leased' },
  'concurrency leases': { limit: 5, algorithm: concurrency({ maxDuration: '1m' }), coordination: 'leased' },
  'fixedWindow central': { ...DAY, coordination: 'central' },
  'tokenBucket central': { ...DAY, algorithm: tokenBucket(), coordination: 'central' },
}
const MAX_KEYS = 200

describe.each(Object.keys(CELLS))('%s', (cell) => {
  const build = async () => {
    const { world, node, close } = scene()
    const throttler = node(CELLS[cell] as AnyPolicyOptions<never>, {
      maxKeys: MAX_KEYS,
      overflow: 'reject',
      alone: cell.endsWith(' local'),
    })
    throttler.start()
    await adapterOf(throttler).inspected.coordinator?.loading
    await world.run(1_000)
    const keys = (): number => snapshot(throttler).policies[0]?.keys ?? Number.NaN
    const ask = async (key: string) => {
      const asking = throttler.checkAsync(key)
      await world.run(20)
      return asking
    }
    return { world, throttler, close, keys, ask }
  }

  test('short manual blocks of ever new keys give their room back when they have ended', async () => {
    const { world, throttler, close, keys, ask } = await build()
    let most = 0
    for (let i = 0; i < 4_000; i++) {
      throttler.block(`blocked ${i}`, 500)
      if (i % 10 === 9) await world.run(100)
      most = Math.max(most, keys())
    }
    // Fifty blocks last at a time.
    expect(most).toBeLessThanOrEqual(MAX_KEYS)
    await world.run(2_000)
    const reasons: string[] = []
    for (let i = 0; i < 30; i++) reasons.push((await ask(`client ${i}`)).reason)
    expect(reasons).toEqual(reasons.map(() => 'ok'))
    expect(keys()).toBeLessThanOrEqual(MAX_KEYS)
    await close()
  })

  test('the last short manual blocks give way to keys of requests', async () => {
    const { world, throttler, close, ask } = await build()
    for (let i = 0; i < MAX_KEYS; i++) throttler.block(`blocked ${i}`, 1_000)
    expect((await ask('too early')).reason).toBe('overflow')
    await world.run(2_000)
    const reasons: string[] = []
    for (let i = 0; i < 30; i++) reasons.push((await ask(`client ${i}`)).reason)
    expect(reasons).toEqual(reasons.map(() => 'ok'))
    await close()
  })

  test('long manual blocks hold, and no more of them than the table has keys beside its own', async () => {
    const { world, throttler, close, keys, ask } = await build()
    const overflows: unknown[] = []
    throttler.on('overflow', (event) => overflows.push(event))
    expect((await ask('a client')).reason).toBe('ok')
    for (let i = 0; i < 5 * MAX_KEYS; i++) {
      throttler.block(`blocked ${i}`, '1d')
      if (i % 10 === 9) await world.run(100)
    }
    expect(keys()).toBeLessThanOrEqual(2 * MAX_KEYS)
    expect(overflows).toHaveLength(1)
    for (const i of [0, 1, MAX_KEYS / 2, MAX_KEYS - 2]) expect((await ask(`blocked ${i}`)).reason).toBe('blocked')
    await close()
  })
})
