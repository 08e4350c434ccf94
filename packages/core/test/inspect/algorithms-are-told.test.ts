import { expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { ManualTime } from '../http/manual-time.ts'

const MINUTE = 60_000

/** The most that an idle key may use of a limit of 6, and the units that are left after two. */
const ROWS: readonly [id: string, algorithm: Algorithm, capacity: number, left: number][] = [
  ['fixed-window', fixedWindow(), 6, 4],
  ['fixed-window-first-request', fixedWindow({ start: 'first-request' }), 6, 4],
  ['sliding-window30', slidingWindow(), 6, 4],
  ['sliding-counter', slidingCounter(), 6, 4],
  ['sliding-log', slidingLog(), 6, 4],
  ['token-bucket', tokenBucket(), 6, 4],
  ['token-bucket', tokenBucket({ burst: 9 }), 9, 7],
  // A cold bucket takes up to three times as long for its units. Of 3 saved units, the slow 1.5 take twice as long on average.
  ['token-bucket-warming-up-30000-3', tokenBucket({ warmUp: '30s', burst: 9 }), 9, 9 - 2 - 1.5],
  ['leaky-bucket', leakyBucket({ burst: 3, immediate: 3 }), 4, 2],
]

test.each(ROWS)('%s: what is told of a policy and of its keys', async (id, algorithm, capacity, left) => {
  const clock = new ManualTime(1_000_000 * MINUTE)
  const rule = { name: 'user', limit: 6, interval: MINUTE, algorithm, coordination: 'local' as const, cooldown: '10s' as const }
  const throttler = createThrottler({ policies: [rule], clock })
  const heard: unknown[] = []
  throttler.on('blocked', ({ policy, key, cause }) => heard.push(['blocked', policy, key, cause]))
  throttler.on('unblocked', ({ policy, key, cause }) => heard.push(['unblocked', policy, key, cause]))
  throttler.on('rejections', ({ policy, rejected, reasons }) => heard.push(['rejections', policy, rejected, reasons]))
  expect(throttler.check('ann', 2).remaining).toBeCloseTo(left, 6)
  expect(throttler.peek('ann').remaining).toBeCloseTo(left, 6)
  const [policy] = snapshot(throttler).policies
  expect(policy).toMatchObject({ name: 'user', algorithm: id, limit: 6, capacity, intervalMs: MINUTE, keys: 1, allowed: 2 })
  expect(cluster(throttler)[0]?.policies[0]).toMatchObject({ algorithm: id, limit: 6, capacity, allowed: 2 })
  const [used] = snapshot(throttler).top
  expect(used).toMatchObject({ policy: 'user', key: 'ann', limit: capacity })
  expect(used?.used).toBeCloseTo(capacity - left, 6)
  expect(used?.own).toBe(used?.used)
  // A key with its own limit can have that limit, or the size of a bucket with that limit.
  throttler.check('bob', { cost: 1, limit: 20 })
  const bob = snapshot(throttler).top.find(({ key }) => key === 'bob')
  expect(bob?.limit).toBe(algorithm.most?.(20) ?? 20)
  let rejected = 0
  while (throttler.check('ann').allowed) expect(throttler.peek('ann', 0).remaining).toBeLessThan(left)
  for (rejected = 1; rejected < 4; ) if (!throttler.check('ann').allowed) rejected++
  expect(heard).toEqual([['blocked', 'user', 'ann', 'exceeded']])
  expect(snapshot(throttler)).toMatchObject({ blocked: [{ policy: 'user', key: 'ann', cause: 'cooldown' }] })
  throttler.block('bob', '5s')
  clock.advance(5_000)
  throttler.check('bob')
  clock.advance(2_000)
  await throttler.close()
  expect(heard).toContainEqual(['blocked', 'user', 'bob', 'manual'])
  expect(heard).toContainEqual(['unblocked', 'user', 'bob', 'expired'])
  const counted = heard.filter((one): one is [string, string, number] => (one as string[])[0] === 'rejections')
  expect(counted.reduce((sum, [, , count]) => sum + count, 0)).toBe(rejected)
})
