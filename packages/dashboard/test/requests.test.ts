import { createThrottler, memoryStore, systemClock, type Throttler, tokenBucket } from '@weir/core'
import { cluster, snapshot } from '@weir/core/inspect'
import { Hub } from '@weir/core/memory'
import { expect, onTestFinished, test } from 'vitest'
import { Charts } from '../src/charts.ts'
import { earlier } from '../src/earlier.ts'
import { dashboard } from '../src/index.ts'
import { Rates } from '../src/rates.ts'
import { serve, throttlerFor, waitFor } from './servers.ts'

/** Number of keys that were used only once. */
let keys = 0

test('requests are requests: neither units nor rejections of all policies added up', { timeout: 20_000 }, async () => {
  const throttler = createThrottler({
    store: memoryStore(new Hub(systemClock)),
    policies: [
      { name: 'a', limit: 300, interval: '1h', cost: 3 },
      { name: 'b', limit: 300, interval: '1h', cost: 3 },
      { name: 'dry', limit: 3, interval: '1h', dryRun: true },
    ],
  }).start()
  onTestFinished(() => throttler.close())
  // One of three requests is allowed.
  const load = setInterval(() => {
    throttler.check(`new ${++keys}`)
    throttler.block('evil', '1h', { policy: 'a' })
    throttler.block('evil', '1h', { policy: 'b' })
    for (let i = 0; i < 2; i++) throttler.check('evil')
  }, 20)
  onTestFinished(() => clearInterval(load))
  const { url } = await serve(dashboard(throttler, { authorize: () => true }))
  const { view } = await waitFor(`${url}/events`, ({ point, reasons }) => (point[1] ?? 0) > 5 && (reasons[0]?.rate ?? 0) > 5)
  const [, allowed, rejected] = view.point
  expect((rejected as number) / ((allowed as number) + (rejected as number))).toBeCloseTo(2 / 3, 1)
  expect(view.reasons).toEqual([{ reason: 'blocked', rate: expect.any(Number), total: expect.any(Number) }])
  expect(view.reasons[0]?.rate).toBeCloseTo(rejected as number)
  expect(view.policies[0]?.allowedRate).toBeCloseTo(3 * (allowed as number))
})

test('the table of limits tells what nodes hold ahead of requests, and what the fullest bucket owes', { timeout: 20_000 }, async () => {
  const throttler = createThrottler({
    store: memoryStore(new Hub(systemClock)),
    policies: [
      { name: 'quota', limit: 100, interval: '1h', coordination: 'leased' },
      { name: 'bucket', limit: 10, interval: '1h', algorithm: tokenBucket() },
    ],
  }).start()
  onTestFinished(() => throttler.close())
  throttler.charge(await throttler.checkAsync('a'), 29)
  const { url } = await serve(dashboard(throttler, { authorize: () => true }))
  const { view } = await waitFor(`${url}/events`, ({ policies }) => (policies[0]?.leased ?? 0) > 0 && (policies[1]?.debt ?? 0) > 15)
  const [quota, bucket] = view.policies
  expect(bucket?.leased).toBe(0)
  expect(quota?.debt).toBe(0)
  expect(bucket?.debt).toBeCloseTo(20, 0)
})

test('the view adds up the open reservations of all processes', { timeout: 20_000 }, async () => {
  const hub = new Hub(systemClock)
  const [one, two] = [0, 1].map(() => {
    const throttler = createThrottler({
      store: memoryStore(hub),
      policies: [
        { name: 'tokens', limit: 10_000, interval: '1h' },
        { name: 'other', limit: 10, interval: '1h' },
      ],
    }).start()
    onTestFinished(() => throttler.close())
    return throttler
  }) as [Throttler<'tokens' | 'other'>, Throttler<'tokens' | 'other'>]
  const receipts = [one, one, two].map((throttler) => throttler.reserve('a', { cost: { tokens: 900 } }))
  const { url } = await serve(dashboard(one, { authorize: () => true }))
  const open = await waitFor(`${url}/events`, ({ policies }) => policies[0]?.reservations.open === 3)
  expect(open.view.policies.map(({ reservations }) => reservations)).toEqual([
    { open: 3, units: 2_700 },
    { open: 0, units: 0 },
  ])
  for (const receipt of receipts) receipt.settle()
  const settled = await waitFor(`${url}/events`, ({ policies, reported }) => reported === 2 && policies[0]?.reservations.open === 0)
  expect(settled.view.policies[0]?.reservations.units).toBe(0)
})

test('who looks sees what was before, also in a process without a store', async () => {
  let ahead = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead }
  const throttler = createThrottler({ clock, policies: [{ limit: 10, interval: '1h', coordination: 'local' }] })
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, { authorize: () => true }))
  for (let i = 0; i < 30; i++) throttler.check('a')
  ahead += 15_500
  const { hello } = await waitFor(`${url}/events`, () => true)
  expect(hello.earlier).toHaveLength(1)
  const [time, allowed, rejected, roundTrip] = hello.earlier[0] ?? []
  expect(Date.now() - (time as number)).toBeLessThan(10_000)
  expect([allowed, rejected, roundTrip]).toEqual([10 / 15, 20 / 15, null])
})

test('what nodes remember is put together by when it was', () => {
  const [self] = cluster(throttlerFor())
  if (self === undefined) throw new Error('no node')
  const node = (age: number, ended: number, allowed: readonly number[]) => ({
    ...self,
    self: age === 0,
    age,
    requests: { ...self.requests, history: { slot: 15_000, ended, allowed, rejected: allowed.map(() => 15) } },
  })
  const points = earlier([node(0, 1_000, [15, 30, 45]), node(2_000, 3_000, [150, 300, 450, 600])], 100_000)
  expect(points.map(([time]) => time)).toEqual([54_000, 69_000, 84_000, 99_000])
  expect(points.map(([, allowed]) => allowed)).toEqual([40, 33, 22, 11])
  expect(points.map(([, , rejected]) => rejected)).toEqual([1, 2, 2, 2])
  // The newest slot of another process is a minute old, so the sums of later slots are unknown.
  expect(earlier([node(0, 0, [0, 0, 0, 0, 0]), node(1_000, 59_000, [15])], 100_000).map(([, allowed]) => allowed)).toEqual([
    1,
    null,
    null,
    null,
    null,
  ])
})

test('an outage is filled from the histories of all processes, once they have reported it', () => {
  const throttler = throttlerFor()
  const [self] = cluster(throttler)
  if (self === undefined) throw new Error('no process')
  const node = (ageMs: number, allowed: readonly number[]) => ({
    ...self,
    self: ageMs === 0,
    ageMs,
    requests: { ...self.requests, history: { slot: 15_000, ended: 1_000, allowed, rejected: allowed.map(() => 0) } },
  })
  const charts = new Charts(throttler)
  for (const point of [
    [70_000, 7, 0, 1],
    [80_000, null, null, null],
    [95_000, null, null, null],
  ] as const)
    charts.add(point)
  // The other process has not reported since the outage.
  expect(charts.fill(earlier([node(0, [30, 60]), node(30_000, [90])], 100_000), 15_000)).toEqual([])
  const filled = charts.fill(earlier([node(0, [30, 60]), node(500, [45, 90])], 100_000), 15_000)
  // Slots of 15 s end at 99,000 and 84,000 ms.
  expect(filled).toEqual([
    [80_000, 10, 0, null],
    [95_000, 5, 0, null],
  ])
  expect(charts.points).toEqual([[70_000, 7, 0, 1], ...filled])
  charts.close()
})

test('rates are those of the last five seconds, however often a view is made', () => {
  const [self] = cluster(throttlerFor())
  if (self === undefined) throw new Error('no process')
  const rates = new Rates()
  const counted = (allowed: number) => [{ ...self, requests: { ...self.requests, allowed } }]
  // 10 requests per second, and 100 in the last second.
  for (let second = 0; second < 10; second++) rates.update(counted(second * 10), second * 1_000)
  expect(rates.ofNode(self.node).allowed).toBe(10)
  rates.update(counted(190), 10_000)
  expect(rates.ofNode(self.node).allowed).toBe(28)
  rates.update(counted(190), 10_100)
  expect(rates.ofNode(self.node).allowed).toBe(28)
  // After a pause the rate is that of the history, and not an average of the pause.
  rates.update(counted(100_000), 60_000)
  expect(rates.ofNode(self.node).allowed).toBe(0)
})

test('what is not yet known of other nodes is left out, and not taken for nothing', { timeout: 20_000 }, async () => {
  const hub = new Hub(systemClock)
  const [one, two] = [throttlerFor(hub), throttlerFor(hub)]
  const load = setInterval(() => void two.check(`key ${++keys}`), 10)
  onTestFinished(() => clearInterval(load))
  await expect.poll(() => snapshot(one).nodes).toBe(2)
  const { url } = await serve(dashboard(one, { authorize: () => true }))
  const points: (number | null)[] = []
  await waitFor(`${url}/events`, ({ point }) => {
    points.push(point[1])
    return point[1] !== null
  })
  expect(points.length).toBeGreaterThan(1)
  expect(points.at(-1)).toBeGreaterThan(10)
})

test('in a dry run nobody is blocked', { timeout: 20_000 }, async () => {
  const throttler = createThrottler({
    policies: [{ name: 'dry', limit: 1, interval: '1h', cooldown: '1h', coordination: 'local', dryRun: true }],
  })
  onTestFinished(() => throttler.close())
  for (let i = 0; i < 5; i++) throttler.check('a')
  const { url } = await serve(dashboard(throttler, { authorize: () => true }))
  const { view } = await waitFor(`${url}/events`, () => true)
  expect(view.policies[0]).toMatchObject({ name: 'dry', dryRun: true, blocked: 1 })
  expect(view.reasons).toEqual([])
})

test('a block that has ended is no block, whatever another node has told', { timeout: 40_000 }, async () => {
  const hub = new Hub(systemClock)
  const [one, two] = [throttlerFor(hub), throttlerFor(hub)]
  const { url } = await serve(dashboard(one, { authorize: () => true }))
  two.block('a', 5_000, { policy: 'user' })
  await waitFor(`${url}/events`, ({ policies, nodes }) => policies[0]?.blocked === 1 && nodes.length === 2)
  const { view } = await waitFor(`${url}/events`, ({ blocked }) => blocked.length === 0)
  expect(view.policies[0]?.blocked).toBe(0)
})
