import { cluster, snapshot } from '@weir/core/inspect'
import { expect, test } from 'vitest'
import { KeyMemory } from '../src/key-memory.ts'
import { LimitedKeys } from '../src/limited.ts'
import type { View } from '../src/protocol.ts'
import { keySeries, nodeSeries, PolicySeries } from '../src/series.ts'
import { throttlerFor } from './servers.ts'

test('the series of a process comes from its own history', () => {
  const [self] = cluster(throttlerFor())
  if (self === undefined) throw new Error('no process')
  const history = { slot: 15_000, ended: 2_000, allowed: [30, 60], rejected: [0, 15] }
  const node = { ...self, node: 'other', ageMs: 1_000, requests: { ...self.requests, history } }
  expect(nodeSeries([self, node], 'other', 100_000).points).toEqual([
    [82_000, 4, 1],
    [97_000, 2, 0],
  ])
  expect(nodeSeries([self, node], 'unknown', 100_000).points).toEqual([])
})

test('the series of a policy has a point every five seconds, and a gap in an outage', () => {
  const series = new PolicySeries()
  const at = (time: number, allowed: number | null) =>
    series.add({
      time,
      policies: [{ name: 'user', allowedRate: 3, rejectedRate: 1 }],
      point: [time, allowed, allowed, null],
    } as unknown as View)
  for (const time of [0, 1_000, 4_900, 5_000]) at(time, 1)
  at(10_000, null)
  expect(series.of('user').points).toEqual([
    [0, 3, 1],
    [5_000, 3, 1],
    [10_000, null, null],
  ])
  at(40 * 60_000, 1)
  expect(series.of('user').points).toHaveLength(1)
})

test('the series of a key has its units, and nothing allowed when its interval ends', () => {
  const throttler = throttlerFor()
  const keys = new KeyMemory(throttler)
  const limited = new LimitedKeys()
  for (const [i, used] of [10, 60, 0].entries()) keys.follow('user', 'a', used, i * 5_000)
  const one = { policy: 'user', key: 'a', reason: 'limit' as const, rejectedLastMinute: 0, sinceFirstMs: 0, sinceLastMs: 0 }
  const own = snapshot(throttler)
  for (const [i, rejected] of [0, 20, 45].entries()) {
    limited.follow(
      limited.list({ ...own, limited: [{ ...one, rejected }] }, [], i * 5_000, () => 'enforced'),
      i * 5_000,
    )
  }
  expect(keySeries(keys, limited, 'user', 'a').points).toEqual([
    [5_000, 10, 4],
    [10_000, 0, 5],
  ])
  expect(keySeries(keys, limited, 'user', 'b').points).toEqual([])
  keys.close()
})
