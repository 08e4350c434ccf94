import { expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { parsePolicy } from '../../src/decide/check-policy.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { CENTRAL, started } from '../support/central.ts'
import { ask, holding } from '../support/held.ts'
import { scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const LOCAL = { coordination: 'local', interval: 1_000 } as const

test('a request above the limit goes on when there is room, and one that would have to wait too long is rejected at once', async () => {
  const it = scene()
  const node = await holding(it, { ...LOCAL, limit: 2, delay: 1_500 })
  await it.world.runTo(1_200)
  const asked = Array.from({ length: 7 }, () => ask(it, node, 'a'))
  await it.world.run(1)
  expect(asked.map(({ at }) => at)).toEqual([1_200, 1_200, undefined, undefined, 1_200, 1_200, 1_200])
  expect(asked.slice(4).map(({ decision }) => decision?.allowed)).toEqual([false, false, false])
  expect(node.waiting).toBe(2)
  await it.world.run(1_000)
  for (const { at, decision } of asked.slice(2, 4)) {
    expect(at).toBe(2_000)
    expect(decision).toMatchObject({ allowed: true, reason: 'ok', remaining: 0, cost: 1, delayMs: 0 })
  }
  expect(node.waiting).toBe(0)
  await it.close()
})

test('nobody overtakes those that wait, and they take turns with nobody else', async () => {
  const it = scene()
  const node = await holding(it, { ...LOCAL, limit: 1, algorithm: tokenBucket(), delay: '10s' })
  const asked = Array.from({ length: 3 }, () => ask(it, node, 'a'))
  const other = ask(it, node, 'b')
  await it.world.run(1_500)
  asked.push(ask(it, node, 'a'))
  await it.world.run(10_000)
  expect(asked.map(({ at }) => at)).toEqual([0, 1_000, 2_000, 3_000])
  expect(other.at).toBe(0)
  await it.close()
})

test('a small request does not overtake a large one for which there is not enough room yet', async () => {
  const it = scene()
  const node = await holding(it, { ...LOCAL, limit: 1, algorithm: tokenBucket({ burst: 2 }), delay: '10s' })
  const first = ask(it, node, 'a', undefined, 2)
  const large = ask(it, node, 'a', undefined, 2)
  await it.world.run(1_200)
  const small = ask(it, node, 'a')
  await it.world.run(10_000)
  expect([first.at, large.at, small.at]).toEqual([0, 2_000, 3_000])
  await it.close()
})

test('where another level rejects, or a key is blocked by hand, nothing is held or counted', async () => {
  const it = scene()
  const node = await holding(it, [
    { ...LOCAL, name: 'wait', limit: 1, delay: '5s' },
    { ...LOCAL, name: 'few', interval: '1h', limit: 1 },
  ])
  const asked = [ask(it, node, 'a'), ask(it, node, 'a')]
  await it.world.run(1)
  expect(asked.map(({ decision }) => decision?.allowed)).toEqual([true, false])
  node.block('b', '1s', { policy: 'wait' })
  const blocked = ask(it, node, 'b')
  await it.world.run(1)
  expect(blocked.decision).toMatchObject({ allowed: false, reason: 'blocked' })
  expect(node.waiting).toBe(0)
  await it.close()
})

test('a dry run holds nothing, and neither does who does not wait', async () => {
  const it = scene()
  const dry = it.node({ ...LOCAL, limit: 1, delay: '5s', dryRun: true })
  expect([dry.check('a'), dry.check('a')].map(({ allowed }) => allowed)).toEqual([true, true])
  const node = await holding(it, { ...LOCAL, limit: 1, delay: '5s' })
  const asked = [ask(it, node, 'a', null), ask(it, node, 'a', null)]
  await it.world.run(1)
  expect(asked.map(({ decision }) => decision?.allowed)).toEqual([true, false])
  await it.close()
})

for (const delay of ['5s', () => 5_000] as const) {
  test(`as many are held as the queue takes, per key and in all; others are rejected: ${typeof delay}`, async () => {
    const it = scene()
    const node = await holding(it, { ...LOCAL, limit: 5, delay }, { queue: { maxWaitingPerKey: 2, maxWaiting: 3 } })
    for (const key of ['a', 'b', 'c']) for (let i = 0; i < 5; i++) ask(it, node, key)
    const asked = ['a', 'a', 'a', 'b', 'b', 'c'].map((key) => ask(it, node, key))
    await it.world.run(1)
    expect(asked.map(({ decision }) => decision?.allowed)).toEqual([undefined, undefined, false, undefined, false, false])
    expect(asked[2]?.decision?.retryAfterMs).toBeGreaterThan(0)
    // Rejected requests were not counted.
    await it.world.run(6_000)
    expect(asked.map(({ decision }) => decision?.allowed)).toEqual([true, true, false, true, false, false])
    await it.close()
  })
}

test('what is held is not rejected: no count, no event; what is rejected at last is', async () => {
  const it = scene()
  const node = await holding(it, { ...LOCAL, limit: 1, delay: 900 })
  const throttled: number[] = []
  node.on('rejections', ({ rejected }) => throttled.push(rejected))
  await it.world.runTo(1_100)
  for (let i = 0; i < 2; i++) ask(it, node, 'a')
  await it.world.run(3_000)
  expect(throttled).toEqual([])
  for (let i = 0; i < 3; i++) ask(it, node, 'a')
  await it.world.run(3_000)
  expect(throttled).toEqual([1])
  await it.close()
})

for (const onClose of ['finish', 'reject'] as const) {
  test(`closing is not held up: ${onClose}`, async () => {
    const it = scene()
    const node = await holding(it, { ...LOCAL, limit: 1, delay: '5s' }, { queue: { onClose }, closeTimeout: 1_500 })
    const asked = [ask(it, node, 'a'), ask(it, node, 'a'), ask(it, node, 'a')]
    await it.world.run(10)
    const closing = node.close().then(() => it.world.time)
    await it.world.run(1_600)
    expect(await closing).toBeLessThanOrEqual(1_511)
    expect(asked.map(({ decision }) => decision?.allowed)).toEqual([true, onClose === 'finish', false])
    expect(asked[2]?.at).toBeLessThanOrEqual(onClose === 'finish' ? 1_511 : 11)
  })
}

test('requests wait for others to end, with concurrency()', async () => {
  const it = scene()
  const node = await holding(it, { limit: 1, algorithm: concurrency(), coordination: 'local', delay: '2s' } as never)
  node.release(await node.checkAsync('a'))
  const [first, second, third] = [ask(it, node, 'a'), ask(it, node, 'a'), ask(it, node, 'a')]
  await it.world.run(500)
  expect([first.at, second.at]).toEqual([0, undefined])
  node.release(first.decision as Decision)
  await it.world.run(1)
  expect(second.at).toBe(500)
  await it.world.run(3_000)
  expect(third).toMatchObject({ at: 2_000, decision: { allowed: false } })
  await it.close()
})

test('costs, limits of keys and other rules hold for what waits', async () => {
  const it = scene()
  const node = await holding(it, { ...LOCAL, limit: 1, delay: '10s' })
  const asked = Array.from({ length: 5 }, () => node.checkAsync('a', { cost: 2, limit: 4 }).then(() => it.world.time))
  await it.world.run(5_000)
  expect(await Promise.all(asked)).toEqual([0, 0, 1_000, 1_000, 2_000])
  const waits = Array.from({ length: 3 }, () => node.checkAsync('b').then(() => it.world.time))
  await it.world.run(10)
  node.update([
    { ...LOCAL, name: 'another', interval: '1h', limit: 10 },
    { ...LOCAL, limit: 100, delay: '10s' },
  ])
  await it.world.run(10)
  expect(await Promise.all(waits)).toEqual([5_000, 5_011, 5_011])
  await it.close()
})

for (const coordination of ['central', 'leased'] as const) {
  test(`where the store decides a request waits as well, and never more than the limit go: ${coordination}`, async () => {
    const it = scene()
    const node = it.node({ ...CENTRAL, coordination, limit: 2, interval: 1_000, delay: '1500ms' })
    if (coordination === 'central') await started(it, node)
    await waiting(it, node)
    // The code for leases and the queue are loaded in real time.
    const loads = ask(it, node, 'loads')
    await vi.waitFor(async () => {
      await it.world.run(1)
      expect(loads.decision).toMatchObject({ allowed: true })
    })
    await it.world.runTo(3_050)
    const asked = Array.from({ length: 7 }, () => ask(it, node, 'a'))
    await it.world.run(3_000)
    const went = asked.filter(({ decision }) => decision?.allowed === true).map(({ at }) => Math.floor((at as number) / 1_000))
    expect(went.filter((second) => second === 3)).toHaveLength(2)
    expect(went.filter((second) => second === 4)).toHaveLength(2)
    expect(asked.every(({ at }) => at !== undefined)).toBe(true)
    await it.close()
  })
}

test('your own code must wait: check says so, acquire waits for as long as it wants', async () => {
  const it = scene()
  const node = await holding(it, { ...LOCAL, limit: 1, delay: 100 })
  expect(() => node.check('a')).toThrow(expect.objectContaining({ code: 'WEIR_ASYNC_POLICY' }))
  const times = [node.acquire('a'), node.acquire('a'), node.acquire('a')].map((one) => one.then(() => it.world.time))
  await it.world.run(5_000)
  expect(await Promise.all(times)).toEqual([0, 1_000, 2_000])
  await it.close()
})

test('what comes before what holds requests is loaded waits for that', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, limit: 1, delay: 500 })
  const decisions = await Promise.all([node.checkAsync('a'), node.checkAsync('a')])
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false])
  await it.close()
})

const REJECTED: readonly (readonly [object, RegExp])[] = [
  [{ delay: 0 }, /"delay" is 0/],
  [{ delay: '25d' }, /"delay"/],
  [{ delay: 'soon' }, /"delay" is "soon"/],
  [{ delay: '1s', cooldown: '1m' }, /"delay" or "cooldown"/],
  [{ delay: '1s', algorithm: leakyBucket({ burst: 3 }), coordination: 'local' }, /"delay": leakyBucket\(\)/],
  [{ delay: () => 1, coordination: 'central' }, /"delay" .*"central"/],
  [{ delay: () => 1, coordination: 'periodic' }, /"delay" .*"periodic"/],
  [{ delay: () => 1, coordination: 'local', interval: undefined, algorithm: concurrency() }, /"delay" .*concurrency\(\)/],
]

for (const [options, message] of REJECTED) {
  test(`options that can't be used are rejected by name: ${message.source}`, () => {
    expect(() => parsePolicy({ limit: 2, interval: '1s', ...options } as never, true)).toThrow(
      expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringMatching(message) }),
    )
  })
}
