import { type ClusterNode, cluster, snapshot } from '@weir/core/inspect'
import { expect, test } from 'vitest'
import { Busiest } from '../src/busiest.ts'
import { Candidates } from '../src/candidates.ts'
import { LimitedKeys } from '../src/limited.ts'
import { Log } from '../src/log.ts'
import { throttlerFor } from './servers.ts'

const MINUTE = 60_000
const limited = (key: string, rejected: number, sinceLastMs = 0) => ({
  policy: 'user',
  key,
  reason: 'limit' as const,
  rejectedLastMinute: rejected,
  rejected,
  sinceFirstMs: 10_000,
  sinceLastMs,
})

function reports() {
  const throttler = throttlerFor()
  const [self] = cluster(throttler)
  if (self === undefined) throw new Error('no process')
  return { self, own: snapshot(throttler) }
}

test('limited keys of all processes are merged, most in the last minute first', () => {
  const { self, own } = reports()
  const other = { ...self, node: 'other', self: false, ageMs: 1_000, limited: [limited('b', 5), limited('a', 2, 3_000)] }
  const keys = new LimitedKeys()
  const list = keys.list({ ...own, limited: [limited('a', 4)] }, [self, other], 100_000, () => 'enforced')
  expect(list).toEqual([
    {
      policy: 'user',
      key: 'a',
      mode: 'enforced',
      reason: 'limit',
      lastMinute: 6,
      total: 6,
      since: 89_000,
      last: 100_000,
      processes: 2,
      spark: [],
    },
    {
      policy: 'user',
      key: 'b',
      mode: 'enforced',
      reason: 'limit',
      lastMinute: 5,
      total: 5,
      since: 89_000,
      last: 99_000,
      processes: 1,
      spark: [],
    },
  ])
})

test('a sparkline has the rejections of each five seconds, and its memory is bounded', () => {
  const { own } = reports()
  const keys = new LimitedKeys()
  const step = (total: number, time: number) => {
    keys.follow(
      keys.list({ ...own, limited: [limited('a', total)] }, [], time, () => 'enforced'),
      time,
    )
  }
  for (const [i, total] of [3, 10, 10, 14].entries()) step(total, i * 5_000)
  expect(keys.steps('user', 'a').steps).toEqual([7, 0, 4])
  // Views between two steps, and a pause of three steps.
  step(20, 16_000)
  step(20, 30_000)
  expect(keys.steps('user', 'a').steps).toEqual([7, 0, 4, 2, 2, 2])
  for (let i = 0; i < 100; i++) step(20, 35_000 + i * 5_000)
  expect(keys.steps('user', 'a').steps).toHaveLength(60)
})

test('the busiest keys are remembered for half an hour with their highest use', () => {
  const busiest = new Busiest()
  const use = (key: string, used: number, debt = 0) => ({ policy: 'user', key, used, limit: 100, debt })
  busiest.add([use('a', 90), use('b', 40, 5)], 0)
  busiest.add([use('a', 10)], 10 * MINUTE)
  busiest.add([use('a', 30)], 20 * MINUTE)
  expect(busiest.of('user')).toEqual([90, 45])
  busiest.add([], 31 * MINUTE)
  expect(busiest.of('user')).toEqual([30])
  for (let i = 0; i < 500; i++) busiest.add([use(`key ${i}`, i)], 31 * MINUTE)
  expect(busiest.of('user')).toHaveLength(50)
  expect(busiest.of('user')[0]).toBe(499)
  busiest.add([], 90 * MINUTE)
  expect(busiest.of('user')).toEqual([])
})

test('a candidate is compared with the enforced policy only since it began', () => {
  const { self } = reports()
  const [policy] = self.policies
  if (policy === undefined) throw new Error('no policy')
  const at = (enforced: number, rejected: number | undefined) => [
    {
      ...self,
      uptimeMs: 60_000,
      policies: [
        { ...policy, rejected: enforced },
        ...(rejected === undefined ? [] : [{ ...policy, name: 'next:user', allowed: 0, rejected }]),
      ],
    },
  ]
  const candidates = new Candidates()
  expect(candidates.judged(at(50, undefined)).policies).toEqual([])
  candidates.judged(at(50, 0))
  expect(candidates.judged(at(57, 9)).policies).toEqual([{ name: 'user', allowed: 0, rejected: 9, enforcedRejected: 7 }])
  // It began before it was seen.
  expect(new Candidates().judged(at(57, 9)).policies).toEqual([{ name: 'user', allowed: 0, rejected: 9 }])
})

test('the log has the events of all processes, each once', () => {
  const { self } = reports()
  const throttler = throttlerFor()
  const log = new Log(throttler, () => {})
  throttler.block('own', '1h', { policy: 'user' })
  const event = { name: 'blocked' as const, ageMs: 100, policy: 'user', key: 'theirs', cause: 'manual', durationMs: 60_000 }
  const remote = { ...event, key: 'own', cause: 'remote' }
  const other = (ageMs: number, events: ClusterNode['events']) => [
    self,
    { ...self, node: 'other', label: 'host:2', self: false, ageMs, events },
  ]
  const time = Date.now()
  log.report(other(500, [event, remote]), time)
  // The same event in a later report.
  log.report(other(200, [{ ...event, ageMs: 1_500 }, remote, { name: 'storeUp', ageMs: 10, durationMs: 3_000 }]), time + 1_000)
  const entries = log.entries.map(({ kind, text, process: by }) => [
    kind,
    text.replace(/[\u2068\u2069]/g, '').replaceAll('\u00a0', ' '),
    by,
  ])
  expect(entries.sort()).toEqual([
    ['blocked', 'own in user for 1 h, manually', undefined],
    ['blocked', 'theirs in user for 1 min, manually', 'host:2'],
    ['storeUp', 'The store answers again, after 3.0 s', 'host:2'],
  ])
  log.close()
})

test('the log keeps the newest events of many processes', () => {
  const { self } = reports()
  const log = new Log(throttlerFor(), () => {})
  const event = (at: number): ClusterNode['events'][number] => ({ name: 'overflow', ageMs: at, policy: 'user', count: at })
  // The newest 80 of 2,000 events are those of the last four processes.
  const nodes = Array.from({ length: 100 }, (_, i) => ({
    ...self,
    node: `n${i}`,
    label: `host:${i}`,
    self: false,
    events: Array.from({ length: 20 }, (_, k) => event((99 - i) * 1_000_000 + k * 20_000)),
  }))
  const time = Date.now()
  for (let round = 0; round < 3; round++) log.report(nodes, time)
  const entries = log.entries.map(({ process: by }) => by)
  expect(entries).toEqual(['host:99', 'host:98', 'host:97', 'host:96'].flatMap((label) => new Array(20).fill(label)))
  log.close()
})
