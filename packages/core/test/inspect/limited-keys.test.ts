import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createThrottler, fixedWindow, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { cluster, limitedLine, snapshot } from '../../src/inspect/index.ts'
import { LABEL, statusOf } from '../../src/inspect/node-status.ts'
import { formatStatus, parseStatus } from '../../src/inspect/status-text.ts'
import { Recent } from '../../src/report/recent.ts'
import { offer, scene } from '../support/nodes.ts'

const ALGORITHMS = { fixedWindow, slidingWindow, slidingCounter, slidingLog, tokenBucket }

test.each(Object.entries(ALGORITHMS))('lists the rejections of each key, as the client counted them: %s', async (_, algorithm) => {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: '10m', algorithm: algorithm() }, { alone: true })
  const seen: Record<string, number> = { a: 0, b: 0, c: 0 }
  for (let second = 0; second < 50; second++) {
    for (const [key, requests] of [
      ['a', 3],
      ['b', second < 20 ? 5 : 0],
      ['c', second === 0 ? 1 : 0],
    ] as const)
      for (let i = 0; i < requests; i++) if (!throttler.check(key).allowed) seen[key] = (seen[key] as number) + 1
    await world.run(1_000)
  }
  const { limited } = snapshot(throttler)
  expect(limited.map(({ policy, key, reason, rejected }) => ({ policy, key, reason, rejected }))).toEqual([
    { policy: 'default', key: 'a', reason: 'limit', rejected: seen['a'] },
    { policy: 'default', key: 'b', reason: 'limit', rejected: seen['b'] },
  ])
})

test('rejections count for a minute, and their times are exact to a snapshot', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 1, interval: '1h' }, { alone: true })
  throttler.check('a')
  for (let second = 0; second < 120; second++) {
    if (second >= 20 && second < 30) offer(throttler, 'a', 2)
    await world.run(1_000)
    snapshot(throttler)
  }
  const last = () => snapshot(throttler).limited[0]
  expect(last()).toMatchObject({ key: 'a', rejected: 20, rejectedLastMinute: 0 })
  expect(last()?.sinceFirstMs).toBe(100_000)
  expect(last()?.sinceLastMs).toBe(90_000)
  offer(throttler, 'a', 7)
  expect(last()).toMatchObject({ rejected: 27, rejectedLastMinute: 7, sinceLastMs: 0 })
})

test('without a snapshot, times are exact to fifteen seconds', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 1, interval: '1h' })
  throttler.start()
  throttler.check('a')
  await world.run(60_000)
  offer(throttler, 'a', 5)
  await world.run(300_000)
  const [limited] = snapshot(throttler).limited
  expect(limited).toMatchObject({ rejected: 5, rejectedLastMinute: 0 })
  expect(Math.abs((limited?.sinceFirstMs ?? 0) - 300_000)).toBeLessThanOrEqual(16_000)
  expect(Math.abs((limited?.sinceLastMs ?? 0) - 300_000)).toBeLessThanOrEqual(16_000)
})

test('names the reason: a limit, a cooldown, a manual block', async () => {
  const { node } = scene()
  const throttler = node({ limit: 1, interval: '1h', cooldown: '10m' }, { alone: true })
  throttler.block('c', 60_000)
  const other = node({ name: 'other', limit: 1, interval: '1h' }, { alone: true })
  for (const key of ['a', 'c']) offer(throttler, key, 3)
  offer(other, 'b', 3)
  expect(snapshot(throttler).limited.map(({ key, reason }) => [key, reason])).toEqual([
    ['c', 'blocked'],
    ['a', 'cooldown'],
  ])
  expect(snapshot(other).limited.map(({ key, reason }) => [key, reason])).toEqual([['b', 'limit']])
})

test('a rejected key stays in the list after the table has dropped it', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 1, interval: '1s' }, { alone: true })
  offer(throttler, 'a', 4)
  for (let i = 0; i < 20; i++) {
    await world.run(1_000)
    throttler.check('b')
  }
  expect(snapshot(throttler).policies[0]?.keys).toBe(1)
  expect(snapshot(throttler).limited).toMatchObject([{ key: 'a', rejected: 3 }])
})

test('keeps a bounded number of keys, and the most rejected of a flood of keys', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 1, interval: '1h' }, { alone: true })
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 5_000; i++) offer(throttler, `rare ${round} ${i}`, 2)
    offer(throttler, 'often', 50)
    await world.run(16_000)
    snapshot(throttler)
  }
  const { limited } = snapshot(throttler, { top: 1_000_000 })
  expect(limited.length).toBeLessThanOrEqual(400)
  expect(limited.filter(({ rejectedLastMinute }) => rejectedLastMinute >= 100)).toMatchObject([{ key: 'often', rejected: 249 }])
})

test('keys of candidates and dry runs are listed with their policies', () => {
  const { node } = scene()
  const rules = [
    { name: 'real', limit: 5, interval: '1m' },
    { name: 'dry', limit: 3, interval: '1m', dryRun: true },
  ] as const
  const throttler = node([...rules], { alone: true })
  offer(throttler, 'a', 7)
  const lines = snapshot(throttler).limited.map(({ policy, key, rejected }) => `${policy} ${key} ${rejected}`)
  expect(new Set(lines)).toEqual(new Set(['real a 2', 'dry a 4']))
})

test('other processes get the list, and a wrong one is not believed', async () => {
  const { world, node } = scene()
  const [one, two] = [node({ limit: 3, interval: '1m' }), node({ limit: 3, interval: '1m' })]
  one.start()
  two.start()
  await world.run(100)
  offer(two, 'a', 10)
  for (let i = 0; i < 4; i++) {
    await world.run(1_000)
    cluster(one)
  }
  expect(cluster(one).find(({ self }) => !self)?.limited).toMatchObject([{ policy: 'default', key: 'a', reason: 'limit', rejected: 7 }])
  const status = statusOf(snapshot(two), LABEL, 0)
  expect(parseStatus(formatStatus(status))?.limited).toEqual(status.limited)
  for (const limited of [undefined, 'all', [null], [{ ...status.limited[0], rejected: '7' }], [{ ...status.limited[0], reason: 'spite' }]])
    expect(parseStatus(JSON.stringify({ ...status, limited }))).toBe(undefined)
})

test('measures by how much a key exceeded its limit in the last hour', async () => {
  const { world, node } = scene()
  const policy = { limit: 20, interval: '1m' } as const
  const [one, two] = [node(policy), node(policy)]
  one.start()
  two.start()
  await world.run(2_000)
  // Both allow requests before either can know of the other's.
  const allowed = offer(one, 'a', 20) + offer(two, 'a', 20)
  await world.run(1_000)
  expect(allowed).toBeGreaterThan(20)
  const measured = () => Math.max(...[one, two].map((each) => snapshot(each).policies[0]?.measuredOvershoot ?? 0))
  expect(measured()).toBeCloseTo(allowed / 20 - 1)
  await world.run(50 * 60_000)
  expect(measured()).toBeCloseTo(allowed / 20 - 1)
  await world.run(16 * 60_000)
  expect(measured()).toBe(0)
})

test('recent numbers: a window of the newest slots that slides', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ wait: fc.integer({ min: 0, max: 40_000 }), count: fc.integer({ min: 0, max: 50 }) }), { maxLength: 40 }),
      (steps) => {
        const recent = new Recent(4, 15_000)
        const events: { from: number; to: number; count: number }[] = []
        let now = 1_000_000
        for (const { wait, count } of steps) {
          const from = now
          now += wait
          recent.add(count, from, now)
          events.push({ from, to: now, count })
          const overlap = (since: number) =>
            events.reduce(
              (sum, { from: a, to: b, count: n }) =>
                sum + (b > a ? (n * Math.max(0, b - Math.max(a, since))) / (b - a) : b >= since ? n : 0),
              0,
            )
          // For the oldest slot only its sum is known.
          expect(recent.sum(now)).toBeLessThanOrEqual(overlap(now - 75_000) + 1e-6)
          expect(recent.sum(now)).toBeGreaterThanOrEqual(overlap(now - 45_000) - 1e-6)
        }
      },
    ),
  )
})

test('an idle and a closed throttler have a list too', async () => {
  const throttler = createThrottler({ policies: [{ limit: 1, interval: '1m' }] })
  expect(snapshot(throttler).limited).toEqual([])
  offer(throttler as never, 'a', 3)
  await throttler.close()
  expect(snapshot(throttler).limited).toMatchObject([{ key: 'a', rejected: 2 }])
})

test('one line for a log names the limited keys of enforced policies, and no key can begin a new line', async () => {
  const { world, node } = scene()
  const throttler = node(
    [
      { name: 'real', limit: 1, interval: '1h' },
      { name: 'dry', limit: 1, interval: '1h', dryRun: true },
    ],
    { alone: true },
  )
  expect(limitedLine(throttler)).toBe('weir: no key was limited in the last minute')
  offer(throttler, 'a\nINFO all is well', 3)
  for (let i = 0; i < 8; i++) offer(throttler, `b${i}`, 2)
  const line = limitedLine(throttler)
  expect(line).toMatch(/^weir: limited in the last minute: ".*" by real \(at its limit\), 2 rejected, 2 since \d{4}-.*Z\. .* And 4 more$/)
  expect(line).not.toMatch(/\n|dry/)
  expect(limitedLine(throttler, { most: 1 })).toMatch(/And 8 more$/)
  await world.run(90_000)
  expect(limitedLine(throttler)).toBe('weir: no key was limited in the last minute')
})
