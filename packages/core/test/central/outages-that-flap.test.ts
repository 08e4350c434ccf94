import { expect, test, vi } from 'vitest'
import { allowed, ask, CENTRAL, started } from '../support/central.ts'
import { central } from '../support/central-queues.ts'
import { type Node, scene } from '../support/nodes.ts'
import { Chance } from '../support/queue-chaos.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const CASES = (['rejecting', 'mute', 'hanging'] as const).flatMap((health) =>
  Array.from({ length: 40 }, (_, i) => ({ health, seed: i + 1 })),
)

test.each(CASES)(
  'however often the store comes and goes, it counts every allowed request, and the limit is kept: $health, seed $seed',
  async ({ health, seed }) => {
    const chance = new Chance(seed)
    const limit = chance.pick(60, 10_000)
    const it = await central(1, { limit, interval: 3_600_000 }, chance.pick(0, 2, 20))
    it.store.storeTimeout = 100
    const [node] = it.nodes as [Node]
    let allowed = 0
    for (const end = it.world.time + 2_500; it.world.time < end; ) {
      if (chance.of(0.03)) it.store.health = it.store.health === 'up' ? health : 'up'
      for (let left = chance.pick(0, 0, 1, 2); left > 0; left--) {
        void node.checkAsync('a').then((decision) => {
          if (decision.allowed) allowed++
        })
      }
      await it.world.run(chance.pick(1, 3, 10, 40))
    }
    it.store.health = 'up'
    await it.world.run(6_000)
    expect(allowed).toBeLessThanOrEqual(limit)
    const usage = node.usage('a')
    await it.world.run(200)
    expect((await usage)[0]?.used).toBe(allowed)
    await it.close()
  },
)

test('a request whose answer is lost is counted once the store is back, even if a later request overtook it', async () => {
  const it = scene()
  const node = it.node(CENTRAL)
  await started(it, node)
  it.store.health = 'hanging'
  const lost = node.checkAsync('k')
  it.store.health = 'up'
  expect(allowed(await ask(it, node, 'k', 2))).toBe(2)
  await it.world.run(1_000)
  expect((await lost).allowed).toBe(true)
  const usage = node.usage('k')
  await it.world.run(20)
  expect((await usage)[0]?.used).toBe(3)
  await it.close()
})

test('a request that never gets an answer is asked again after a second, and its key goes on', async () => {
  const it = scene()
  const node = it.node({ ...CENTRAL, limit: 100 })
  await started(it, node)
  it.store.storeTimeout = Number.POSITIVE_INFINITY
  it.store.health = 'hanging'
  const lost = Array.from({ length: 40 }, () => node.checkAsync('k'))
  await it.world.run(100)
  it.store.health = 'up'
  expect((await Promise.all(lost)).every(({ allowed }) => allowed)).toBe(true)
  await it.world.run(3_000)
  expect(allowed(await ask(it, node, 'k', 100))).toBe(60)
  await it.close()
})

test('no more than 30 requests of one key are under way to the store at once, and all of them are decided about', async () => {
  const it = scene()
  it.store.roundTrip = 10
  const node = it.node({ ...CENTRAL, limit: 1_000, storeTimeout: '1s' })
  await started(it, node)
  const before = it.store.decided.length
  const all = Promise.all(Array.from({ length: 100 }, () => node.checkAsync('k')))
  await it.world.run(5)
  expect(it.store.decided.length - before).toBe(30)
  await it.world.run(50)
  expect(allowed(await all)).toBe(100)
  const units = it.store.decided.slice(before).map(({ request }) => request.questions[0]?.units ?? 0)
  expect(units.reduce((sum, more) => sum + more, 0)).toBe(100)
  await it.close()
})
