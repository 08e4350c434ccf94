import { expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { allowed, ask, CENTRAL, started } from '../support/central.ts'
import { scene, thrownBy, warnings } from '../support/nodes.ts'

for (const algorithm of [fixedWindow(), fixedWindow({ start: 'first-request' }), tokenBucket(), slidingLog()]) {
  test(`${algorithm.name}: nodes together allow the limit exactly, at once and in any order`, async () => {
    const it = scene()
    it.store.roundTrip = 2
    const nodes = [it.node({ ...CENTRAL, algorithm }), it.node({ ...CENTRAL, algorithm }), it.node({ ...CENTRAL, algorithm })]
    await started(it, ...nodes)
    const decisions = await Promise.all(nodes.map((node) => ask(it, node, 'k', 7)))
    expect(decisions.flat().filter(({ allowed }) => allowed)).toHaveLength(10)
    const rejected = decisions.flat().find(({ allowed }) => !allowed)
    expect(rejected).toMatchObject({ reason: 'limit', remaining: 0, limit: 10, cost: 0 })
    expect(rejected?.retryAfterMs).toBeGreaterThan(0)
    await it.close()
  })

  test(`${algorithm.name}: a request after exactly retry-after fits`, async () => {
    const it = scene()
    const node = it.node({ ...CENTRAL, algorithm })
    await started(it, node)
    await ask(it, node, 'k', 10)
    const [rejected] = (await ask(it, node, 'k', 1)) as [Decision]
    expect(rejected.allowed).toBe(false)
    await it.world.run(rejected.retryAfterMs)
    expect(allowed(await ask(it, node, 'k', 1))).toBe(1)
    await it.close()
  })

  test(`${algorithm.name}: refunds come back, charges count, at all nodes`, async () => {
    const it = scene()
    const [a, b] = [it.node({ ...CENTRAL, algorithm }), it.node({ ...CENTRAL, algorithm })]
    await started(it, a, b)
    const [first] = (await ask(it, a, 'k', 1, 6)) as [Decision]
    expect(first).toMatchObject({ allowed: true, cost: 6 })
    expect(first.remaining).toBeCloseTo(4, 0)
    a.refund(first, 4)
    await it.world.run(1)
    const [second] = (await ask(it, b, 'k', 1)) as [Decision]
    expect(second.remaining).toBeCloseTo(7, 0)
    b.charge(second, 7)
    await it.world.run(1)
    expect(allowed(await ask(it, a, 'k', 1, 1))).toBe(0)
    await it.close()
  })
}

test('what the store said of an interval that has ended meanwhile is not taken for the one that runs', async () => {
  const it = scene()
  it.store.roundTrip = 20
  const node = it.node(CENTRAL)
  await started(it, node)
  await it.world.runTo(19_900)
  await ask(it, node, 'k', 10)
  await it.world.runTo(19_985)
  const rejected = node.checkAsync('k')
  const passed = node.checkAsync('other')
  await it.world.runTo(20_020)
  expect(await rejected).toMatchObject({ allowed: false })
  expect(await passed).toMatchObject({ allowed: true })
  for (const key of ['k', 'other']) expect(node.peek(key), key).toMatchObject({ allowed: true, remaining: 10 })
  await it.close()
})

test('check throws from the first call on, and says what to do', async () => {
  const it = scene()
  const node = it.node(CENTRAL)
  const error = thrownBy(() => node.check('k'))
  expect(error).toMatchObject({ code: 'WEIR_ASYNC_POLICY' })
  expect(error.message).toContain('checkAsync')
  expect(thrownBy(() => adapterOf(node).decide(['k'], [1]))).toMatchObject({ code: 'WEIR_ASYNC_POLICY' })
  node.update([{ limit: 10, interval: 10_000 }])
  expect(node.check('k').allowed).toBe(true)
  await it.close()
})

test('a key that is known to be closed is rejected without asking, for a second', async () => {
  const it = scene()
  const node = it.node(CENTRAL)
  await started(it, node)
  await ask(it, node, 'k', 11)
  const asked = it.store.decided.length
  expect(asked).toBe(11)
  const rejected = await ask(it, node, 'k', 20)
  expect(allowed(rejected)).toBe(0)
  expect(it.store.decided.length).toBe(asked)
  await it.world.run(1_000)
  await ask(it, node, 'k', 1)
  expect(it.store.decided.length).toBe(asked + 1)
  await it.close()
})

test('a store that does not answer in time: the share decides after 50 ms, then at once; the store counts all once it is back', async () => {
  const it = scene()
  const [a, b] = [it.node(CENTRAL), it.node(CENTRAL)]
  await started(it, a, b)
  await ask(it, a, 'k', 2)
  it.store.health = 'mute'
  const begun = it.world.time
  const waiting = ask(it, a, 'k', 3)
  expect(allowed(await waiting)).toBe(3)
  expect(it.world.time - begun).toBeLessThanOrEqual(51)
  // Without a request to the store: half of the remaining units are this process's part.
  const more = it.store.decided.length
  expect(allowed(await ask(it, a, 'k', 5))).toBe(1)
  expect(it.store.decided.length).toBeLessThanOrEqual(more + 1)
  it.store.health = 'up'
  await it.world.run(1_500)
  const [last] = (await ask(it, b, 'k', 1)) as [Decision]
  expect(last.remaining).toBe(3)
  await it.close()
})

test('levels: a rejection here asks nobody, and one of the store gives back what was counted here', async () => {
  const it = scene()
  const local = { name: 'here', limit: 4, interval: 10_000, coordination: 'local' as const }
  const node = it.node([local, { ...CENTRAL, name: 'store', limit: 2 }])
  await started(it, node)
  const decisions = await ask(it, node, 'k', 3)
  expect(allowed(decisions)).toBe(2)
  expect(decisions.map(({ parts }) => parts.map(({ allowed }) => allowed))).toEqual([
    [true, true],
    [true, true],
    [true, false],
  ])
  expect(node.peek('k').parts[0]?.remaining).toBe(2)
  expect(decisions[2]?.parts[0]?.remaining).toBe(2)
  node.block('other', '1m', { policy: 'here' })
  const asked = it.store.decided.length
  expect(allowed(await ask(it, node, 'other', 3))).toBe(0)
  expect(it.store.decided.length).toBe(asked)
  await it.close()
})

test('several central policies: in one part all or nothing in one request; else a rejection gives back the others', async () => {
  const it = scene()
  const policies = [
    { ...CENTRAL, name: 'big', limit: 10 },
    { ...CENTRAL, name: 'small', limit: 3, key: 'all' as const },
  ]
  for (const parts of [1, 2]) {
    it.store.parts = parts
    const node = it.node(policies.map((policy) => ({ ...policy, name: `${policy.name}${parts}` })))
    await started(it, node)
    const before = it.store.decided.length
    // Its length differs from the length of "all".
    expect(allowed(await ask(it, node, 'kk', 5))).toBe(3)
    expect(it.store.decided.slice(before).filter(({ request }) => request.questions.length === 2)).toHaveLength(parts === 1 ? 5 : 0)
    await it.world.run(5)
    const usage = node.usage('kk')
    await it.world.run(20)
    expect((await usage).map(({ used, source }) => [used, source])).toEqual([
      [3, 'store'],
      [3, 'store'],
    ])
  }
  await it.close()
})

test('a dry run asks, but nobody waits; what it would have rejected is counted on reply', async () => {
  const it = scene()
  it.store.roundTrip = 20
  const node = it.node({ ...CENTRAL, limit: 2, dryRun: true })
  await started(it, node)
  for (let i = 0; i < 4; i++) expect(adapterOf(node).decideAsync(['k'], [1])).not.toBeInstanceOf(Promise)
  expect(it.store.decided).toHaveLength(4)
  await it.world.run(25)
  expect(adapterOf(node).inspected.limiters[0]?.stats.rejected).toBe(2)
  expect(adapterOf(node).decideAsync(['k'], [1])).toMatchObject({ allowed: true, dryRun: true, reason: 'limit' })
  await it.close()
})

test('a reset holds for the next request, at all nodes', async () => {
  const it = scene()
  const [a, b] = [it.node(CENTRAL), it.node(CENTRAL)]
  await started(it, a, b)
  await ask(it, a, 'k', 11)
  await ask(it, b, 'k', 1)
  a.reset('k')
  expect(allowed(await ask(it, a, 'k', 4))).toBe(4)
  await it.world.run(50)
  expect(allowed(await ask(it, b, 'k', 7))).toBe(6)
  await it.close()
})

test('a limit for one request goes with the question', async () => {
  const it = scene()
  const node = it.node(CENTRAL)
  await started(it, node)
  expect(allowed(await ask(it, node, 'k', 5, { limit: 3 }))).toBe(3)
  const [more] = (await ask(it, node, 'k', 1, { limit: 20 })) as [Decision]
  expect(more).toMatchObject({ allowed: true, limit: 20, remaining: 16 })
  expect(allowed(await ask(it, node, 'k', 1, { limit: 0 }))).toBe(0)
  expect(allowed(await ask(it, node, 'k', 1, { limit: Number.POSITIVE_INFINITY }))).toBe(1)
  await it.close()
})

test('one warning says that a usual round trip takes more than a fifth of the storeTimeout', async () => {
  const heard = warnings()
  const slow = () => heard.filter(({ message }) => message.includes('The store needs')).map(({ message }) => message)
  const it = scene()
  const node = it.node({ ...CENTRAL, limit: 1_000, storeTimeout: 100 })
  await started(it, node)
  it.store.roundTrip = 18
  for (let i = 0; i < 40; i++) await ask(it, node, 'k', 1)
  await new Promise(setImmediate)
  expect(slow()).toEqual([])
  it.store.roundTrip = 40
  for (let i = 0; i < 80; i++) expect(allowed(await ask(it, node, 'k', 1))).toBe(1)
  await new Promise(setImmediate)
  expect(slow()).toHaveLength(1)
  expect(slow()[0]).toMatch(/needs (2\d|3\d|4\d) ms on average, but "storeTimeout" is 100 ms.*"failMode".*Raise "storeTimeout"/)
  await it.close()
})
