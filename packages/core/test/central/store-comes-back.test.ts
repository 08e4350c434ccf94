import { expect, test, vi } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { allowed, ask, CENTRAL, started } from '../support/central.ts'
import { scene, warnings } from '../support/nodes.ts'

/** Number of keys that are sent at once when the store comes back. */
const SLICE = 500

test('what thousands of keys were allowed without the store is told slice by slice, and all of it', async () => {
  const it = scene()
  it.store.roundTrip = 4
  const [a, b] = [it.node(CENTRAL), it.node(CENTRAL)]
  await started(it, a, b)
  it.store.failure = new Error('away')
  it.store.health = 'rejecting'
  await it.world.run(1_500)
  expect(a.state).toBe('storeDown')
  const keys = Array.from({ length: 2_300 }, (_, i) => `user ${i}`)
  for (const key of keys) expect(await a.checkAsync(key)).toMatchObject({ allowed: true })
  const before = it.store.decided.length
  it.store.health = 'up'
  await it.world.run(2_000)
  const told = it.store.decided.slice(before).filter(({ node }) => node === a.nodeId)
  expect(told.map(({ request }) => request.questions[0]?.key).sort()).toEqual([...keys].sort())
  const byMoment = new Map<number, number>()
  for (const { at } of told) byMoment.set(at, (byMoment.get(at) ?? 0) + 1)
  expect(Math.max(...byMoment.values())).toBeLessThanOrEqual(SLICE)
  expect(byMoment.size).toBeGreaterThanOrEqual(5)
  const [last] = (await ask(it, b, 'user 7', 1)) as [Decision]
  expect(last.remaining).toBe(8)
  await it.close()
})

test('of several policies that were asked about together all count, though the answer was lost', async () => {
  const it = scene()
  const policies = ['one', 'two'].map((name) => ({ ...CENTRAL, name }))
  const node = it.node(policies)
  await started(it, node)
  await ask(it, node, 'k', 1)
  for (const health of ['mute', 'hanging'] as const) {
    it.store.health = health
    expect(allowed(await ask(it, node, 'k', 1))).toBe(1)
    await it.world.run(it.store.storeTimeout)
    it.store.health = 'up'
    await it.world.run(1_500)
  }
  const usage = node.usage('k')
  await it.world.run(20)
  expect((await usage).map(({ used, source }) => [used, source])).toEqual([
    [3, 'store'],
    [3, 'store'],
  ])
  await it.close()
})

test('a key that the store can not read is decided about alone, and disturbs no other one', async () => {
  const heard = warnings()
  const it = scene()
  const node = it.node({ ...CENTRAL, failMode: 'closed' })
  await started(it, node)
  it.store.unreadable.add('bad')
  for (let i = 0; i < 3; i++) {
    expect((await ask(it, node, 'bad', 1))[0]).toMatchObject({ allowed: false })
    const asked = it.store.decided.length
    expect(allowed(await ask(it, node, `good ${i}`, 1))).toBe(1)
    expect(it.store.decided.length).toBe(asked + 1)
  }
  const [decision] = await ask(it, node, 'charged', 1)
  it.store.unreadable.add('charged')
  node.charge(decision as Decision, 2)
  await it.world.run(50)
  expect(allowed(await ask(it, node, 'after', 1))).toBe(1)
  const asked = it.store.decided.length
  await it.world.run(5_000)
  expect(it.store.decided.length).toBe(asked)
  await vi.waitFor(() =>
    expect(heard.map(({ message }) => message)).toContainEqual(expect.stringContaining('Invalid reply from the store for policy')),
  )
  await it.close()
})

test('100,000 requests that wait for a store that hangs are all decided about at their storeTimeout; then nobody waits', async () => {
  const it = scene()
  const node = it.node({ ...CENTRAL, limit: 1_000, algorithm: tokenBucket() })
  await started(it, node)
  it.store.health = 'hanging'
  it.store.storeTimeout = Number.POSITIVE_INFINITY
  const begun = it.world.time
  const waits: number[] = []
  const all = Array.from({ length: 100_000 }, async (_, i) => {
    const decision = await node.checkAsync(`user ${i % 1_000}`)
    waits.push(it.world.time - begun)
    return decision
  })
  const asked = it.store.decided.length
  // Each turn of the event loop ends a thousand requests, so that other work gets its turn. A turn takes at most a millisecond of this
  // clock.
  await it.world.run(50)
  for (let i = 0; i < 100; i++) await it.world.run(1)
  expect(waits).toHaveLength(100_000)
  expect(allowed(await Promise.all(all))).toBe(100_000)
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(50)
  for (let i = 0; i < 1_000; i++) await node.checkAsync('user 1')
  expect(it.store.decided.length).toBeLessThanOrEqual(asked + 1)
  it.store.health = 'up'
  await it.close()
}, 30_000)

test('requests that wait when the throttler is closed are decided about without the store', async () => {
  const it = scene()
  const node = it.node(CENTRAL)
  await started(it, node)
  it.store.health = 'hanging'
  const waiting = Promise.all(Array.from({ length: 100 }, () => node.checkAsync('k')))
  const closed = it.close(node)
  expect(allowed(await waiting)).toBe(10)
  await closed
  await expect(node.checkAsync('k')).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
})
