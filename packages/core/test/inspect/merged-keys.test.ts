import { expect, test } from 'vitest'
import { fixedWindow, leakyBucket, type PolicyOptions, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type LimitedKey, mergeLimited, mergeTop, type NodeStatus, snapshot } from '../../src/inspect/index.ts'
import { statusOf } from '../../src/inspect/node-status.ts'
import { formatStatus, parseStatus } from '../../src/inspect/status-text.ts'
import { scene } from '../support/nodes.ts'

const LIMIT = 20
const BUCKET = { algorithm: tokenBucket({ burst: LIMIT }) }
const CASES: readonly (readonly [name: string, options: Partial<PolicyOptions<never>>])[] = [
  ['fixed window', { algorithm: fixedWindow() }],
  ['sliding window', { algorithm: slidingWindow() }],
  ['token bucket', BUCKET],
  ['leaky bucket', { algorithm: leakyBucket({ burst: LIMIT - 1, immediate: LIMIT - 1 }) }],
  ['fixed window, leased', { coordination: 'leased' }],
  ['fixed window, local', { coordination: 'local' }],
  ['token bucket, local', { ...BUCKET, coordination: 'local' }],
]

test.each(CASES)('the merged use of a full key is what clients got, and a full bucket is at most full: %s', async (name, options) => {
  const { world, node } = scene()
  const policy = { name: 'user', limit: LIMIT, interval: '1h', ...options } as const
  const nodes = [0, 1, 2].map(() => node(policy as never))
  for (const one of nodes) one.start()
  await world.run(1_000)
  let allowed = 0
  for (let round = 0; round < 40; round++) {
    for (const one of nodes) void one.checkAsync('mallory').then((decision) => void (allowed += decision.allowed ? 1 : 0))
    await world.run(500)
  }
  // As another process reads them.
  const reports = nodes.map((one) => parseStatus(formatStatus(statusOf(snapshot(one), 'host:1', 5))) as NodeStatus)
  const [merged] = mergeTop(reports)
  expect(merged).toMatchObject({ policy: 'user', key: 'mallory', limit: LIMIT })
  if (name.includes('bucket')) {
    expect(merged?.used).toBeGreaterThan(LIMIT - 1)
    expect(merged?.used).toBeLessThanOrEqual(LIMIT)
  } else expect(merged?.used).toBe(name.includes('local') ? LIMIT : allowed)
})

test('a key with a limit of its own is reported with it, and one without a limit is left out', () => {
  const { node } = scene()
  const policy = { name: 'user', limit: LIMIT, interval: '1h' } as const
  const one = node(policy, { alone: true })
  one.update(
    [policy],
    [
      { policy: 'user', key: 'own', limit: 500 },
      { policy: 'user', key: 'none', limit: Number.POSITIVE_INFINITY },
    ],
  )
  for (const key of ['own', 'none', 'usual']) for (let i = 0; i < 10; i++) one.check(key)
  expect(snapshot(one).top).toHaveLength(3)
  const merged = mergeTop([parseStatus(formatStatus(statusOf(snapshot(one), 'host:1', 5))) as NodeStatus])
  expect(merged).toEqual([
    { policy: 'user', key: 'usual', used: 10, limit: LIMIT, debt: 0 },
    { policy: 'user', key: 'own', used: 10, limit: 500, debt: 0 },
  ])
})

test("with coordination 'central' each process's own count is the store's", () => {
  const policies = [{ name: 'user', algorithm: 'fixed-window', coordination: 'central' }] as unknown as NodeStatus['policies']
  const reports = [16, 20, 20].map((used) => ({ policies, top: [{ policy: 'user', key: 'k', used, own: used, limit: 20 }] }))
  expect(mergeTop(reports)).toEqual([{ policy: 'user', key: 'k', used: 20, limit: 20, debt: 0 }])
})

test('the debt of a bucket is no use, and a policy that is left out of a report counts as a window', () => {
  const policies = [{ name: 'bucket', algorithm: 'token-bucket', coordination: 'background' }] as unknown as NodeStatus['policies']
  const top = [
    { policy: 'other', key: 'a', used: 3, own: 2, limit: 5 },
    { policy: 'bucket', key: 'b', used: 51, own: 51, limit: 20 },
  ]
  expect(
    mergeTop([
      { top, policies },
      { top, policies: [] },
    ]),
  ).toEqual([
    { policy: 'bucket', key: 'b', used: 20, limit: 20, debt: 31 },
    { policy: 'other', key: 'a', used: 4, limit: 5, debt: 0 },
  ])
})

test('rejections are added, with the first and the last time, and the reason of the last one', () => {
  const one = (key: string, rejected: number, [first, last]: readonly [number, number], reason: LimitedKey['reason']): LimitedKey => ({
    policy: 'user',
    key,
    reason,
    rejectedLastMinute: rejected,
    rejected: 2 * rejected,
    sinceFirstMs: first,
    sinceLastMs: last,
  })
  const reports = [
    { ageMs: 0, limited: [one('a', 4, [9_000, 3_000], 'limit')] },
    { ageMs: 1_000, limited: [one('b', 7, [500, 500], 'blocked'), one('a', 2, [20_000, 100], 'cooldown')] },
  ]
  const a = { ...one('a', 6, [21_000, 1_100], 'cooldown'), processes: 2 }
  const b = { ...one('b', 7, [1_500, 1_500], 'blocked'), processes: 1 }
  for (const order of [reports, reports.toReversed()]) expect(mergeLimited(order)).toEqual([b, a])
})
