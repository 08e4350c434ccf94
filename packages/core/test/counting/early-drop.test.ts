import { describe, expect, test } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { EarlyDrop } from '../../src/counting/bucket/early-drop.ts'
import { type Scene, scene, seeded, thrownBy } from '../support/nodes.ts'

const shape = { most: 100, drain: 0.1, interval: 1_000 }

/** A key with a demand of `rate` units per millisecond. */
function askedFor(rate: number): EarlyDrop {
  const drop = new EarlyDrop()
  drop.arm(0, shape.interval)
  for (let at = 0; at <= 500; at += 50) drop.answered(at * rate, at, shape, at)
  return drop
}

describe('letting requests in by chance', () => {
  test('begins with a full bucket, while more is asked for than runs out', () => {
    expect(askedFor(0.2).active(90, shape, 600)).toBe(true)
    expect(askedFor(0.09).active(90, shape, 600)).toBe(false)
    expect(new EarlyDrop().active(90, shape, 600)).toBe(false)
  })

  test('ends when the bucket is half empty, and two intervals after the last sign of more', () => {
    const drop = askedFor(0.2)
    expect(drop.active(50, shape, 600)).toBe(false)
    expect(drop.active(90, shape, 600)).toBe(false)
    expect(askedFor(0.2).active(90, shape, 2_499)).toBe(true)
    expect(askedFor(0.2).active(90, shape, 2_501)).toBe(false)
  })

  test.each([
    [80, 0.5],
    [90, 0.4],
    [60, 0.7],
    [130, 0],
  ])('a level of %i lets in %f of twice the pace, whatever chance says', (level, part) => {
    const drop = askedFor(0.2)
    const random = seeded(level)
    let allowed = 0
    for (let i = 0; i < 1_000; i++) if (drop.allows(level, shape, random())) allowed++
    expect(allowed / 1_000).toBeCloseTo(part, 2)
  })

  test('a store that lost its data is no drop of demand', () => {
    const drop = askedFor(0.2)
    drop.answered(0, 550, shape, 550)
    drop.answered(10, 600, shape, 600)
    expect(drop.active(90, shape, 600)).toBe(true)
  })
})

describe('a cluster of buckets with early drop', () => {
  /** Sends each of two processes this many requests per second, evenly. Returns the number of allowed ones in each second. */
  async function flood({ world, node }: Scene, seconds: number, perSecond: number): Promise<number[]> {
    const policy = { limit: 100, interval: 1_000, algorithm: tokenBucket({ earlyDrop: true }) }
    const nodes = [node(policy), node(policy)]
    for (const one of nodes) one.start()
    await world.run(1_100)
    const allowed: number[] = []
    for (let second = 0; second < seconds; second++) {
      let count = 0
      for (let i = 0; i < perSecond; i++) {
        for (const one of nodes) if (one.check('a').allowed) count++
        await world.run(1_000 / perSecond)
      }
      allowed.push(count)
    }
    return allowed
  }

  test('allows evenly what runs out, and is not closed, though the store is far away', async () => {
    const here = scene()
    here.store.roundTrip = 100
    const allowed = await flood(here, 12, 250)
    for (const count of allowed.slice(6)) {
      expect(count).toBeGreaterThan(85)
      expect(count).toBeLessThan(115)
    }
    await here.close()
  })

  test('rejects nobody below the limit', async () => {
    const here = scene()
    expect(await flood(here, 3, 45)).toEqual([90, 90, 90])
    await here.close()
  })

  test('tells a rejected client when to come again', async () => {
    const here = scene()
    const policy = { limit: 100, interval: 1_000, algorithm: tokenBucket({ earlyDrop: true }) }
    const one = here.node(policy)
    one.start()
    await here.world.run(1_100)
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < 3_000; i++) {
      const { allowed, retryAfterMs, reason } = one.check('a')
      if (!allowed) {
        expect(reason).toBe('limit')
        least = Math.min(least, retryAfterMs)
      }
      await here.world.run(2)
    }
    expect(least).toBeGreaterThanOrEqual(1)
    await here.close()
  })
})

test('earlyDrop is true or false, and nothing for a bucket that warms up', () => {
  expect(thrownBy(() => tokenBucket({ earlyDrop: 1 as never })).message).toContain('"earlyDrop" is 1')
  expect(thrownBy(() => tokenBucket({ earlyDrop: true, warmUp: '1s' })).message).toContain('"earlyDrop"')
  expect(tokenBucket({ earlyDrop: false, warmUp: '1s' }).shape).toBe(undefined)
})
