import { describe, expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { HeaderWriter } from '../../src/http/answer/headers.ts'
import { scene } from '../support/nodes.ts'

const forms: readonly [Algorithm, 'local' | 'background' | 'periodic' | 'leased' | 'central'][] = [
  [fixedWindow(), 'local'],
  [fixedWindow(), 'background'],
  [fixedWindow(), 'periodic'],
  [fixedWindow(), 'leased'],
  [fixedWindow(), 'central'],
  [slidingWindow(), 'local'],
  [slidingWindow(), 'background'],
  [slidingWindow(), 'central'],
  [slidingCounter(), 'local'],
  [slidingLog(), 'local'],
  [tokenBucket(), 'local'],
  [tokenBucket(), 'background'],
  [leakyBucket({ burst: 5, immediate: 5 }), 'local'],
]

describe.each(forms)('%o, %s', (algorithm, coordination) => {
  test('a blocked key is not told of units, before and after', async () => {
    const { node, world } = scene()
    const throttler = node({ limit: 6, interval: '1m', algorithm, coordination })
    const ask = async (key: string) => {
      const asked = throttler.checkAsync(key)
      await world.run(10)
      return asked
    }
    await ask('a')
    throttler.block('a', '10s')
    for (const decision of [throttler.peek('a'), await ask('a')]) {
      expect(decision).toMatchObject({ allowed: false, reason: 'blocked', remaining: 0 })
      expect(new HeaderWriter(throttler.policies).limitField(decision)).toMatch(/;r=0;t=10$/)
    }
    expect((await ask('b')).remaining).toBeGreaterThan(0)
    await world.run(10_001)
    expect((await ask('a')).remaining).toBeGreaterThan(0)
  })
})

test('nor is one in its cooldown', async () => {
  const { node, world } = scene()
  const throttler = node({ limit: 2, interval: '1s', cooldown: '1m' })
  for (let i = 0; i < 3; i++) throttler.check('a')
  await world.run(5_000)
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'cooldown', remaining: 0 })
})
