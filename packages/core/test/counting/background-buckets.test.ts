import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/snapshot.ts'
import { type Node, offer, type Scene, scene } from '../support/nodes.ts'

const algorithm = tokenBucket()

/** Two connected processes. */
async function two(policy: Partial<PolicyOptions<never>> = {}): Promise<Scene & { one: Node; other: Node }> {
  const here = scene()
  const [one, other] = [0, 1].map(() => here.node({ limit: 60, interval: 6_000, algorithm, ...policy })) as [Node, Node]
  one.start()
  other.start()
  await here.world.run(1_100)
  return { ...here, one, other }
}

test('with a store a bucket counts in the background', () => {
  const { node } = scene()
  expect(node({ limit: 1, interval: '1s', algorithm }).policies[0]?.coordination).toBe('background')
  expect(node({ limit: 1, interval: '1s', algorithm: leakyBucket({ burst: 2, immediate: 2 }) }).policies[0]?.coordination).toBe(
    'background',
  )
})

test('random traffic of one node is decided as an exact bucket would', async () => {
  const arrival = fc.record({ wait: fc.nat(400), cost: fc.constantFrom(1, 1, 2, 0.5) })
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { minLength: 20, maxLength: 60 }), fc.integer({ min: 4, max: 12 }), async (arrivals, burst) => {
      const { world, node, close } = scene()
      const throttler = node({ limit: 10, interval: 1_000, algorithm: tokenBucket({ burst }) })
      throttler.start()
      await world.run(10)
      let level = 0
      let then = world.time
      let closedUntil = Number.NEGATIVE_INFINITY
      for (const { wait, cost } of arrivals) {
        await world.run(wait)
        level = Math.max(0, level - (world.time - then) / 100)
        then = world.time
        const fits = level + cost <= burst + 1e-9
        const decision = throttler.check('a', cost)
        if (world.time >= closedUntil) expect(decision.allowed).toBe(fits)
        else expect(decision.allowed).toBe(false)
        if (!decision.allowed && world.time >= closedUntil && level + 1 > burst + 1e-9) {
          closedUntil = world.time + (level - (burst - Math.max(1, Math.min(burst / 2, Math.max(0.1 * burst, 0.5))))) * 100 - 1e-6
        }
        if (decision.allowed) level += cost
      }
      await close()
    }),
    { numRuns: 60 },
  )
})

test('what one node allows the others know of', async () => {
  const { one, other, world, close } = await two()
  expect(offer(one, 'a', 100)).toBe(60)
  await world.run(5)
  expect(offer(other, 'a', 100)).toBe(0)
  await world.run(3_000)
  expect([offer(other, 'a', 100), offer(one, 'a', 1)]).toEqual(
    [30, 0].map((units) => expect.toSatisfy((got: number) => got >= units && got <= units + 1)),
  )
  await close()
})

test('what was allowed too much is paid back', async () => {
  const { one, other, world, store, close } = await two()
  store.roundTrip = 200
  expect(offer(one, 'a', 60) + offer(other, 'a', 60)).toBe(120)
  await world.run(6_000)
  expect(offer(one, 'a', 60) + offer(other, 'a', 60)).toBe(0)
  await world.run(6_100)
  expect(offer(one, 'a', 60)).toBeGreaterThanOrEqual(58)
  await close()
})

test('with maxDebt no more than that is paid back', async () => {
  const { one, other, world, store, close } = await two({ algorithm: tokenBucket({ maxDebt: 15 }) })
  store.roundTrip = 200
  expect(offer(one, 'a', 60) + offer(other, 'a', 60)).toBe(120)
  await world.run(500)
  // The wait is for 15 units and a tenth of the bucket.
  const { retryAfterMs } = one.check('a')
  expect(retryAfterMs).toBeLessThanOrEqual(2_100)
  await world.run(2_100)
  expect(one.check('a').allowed).toBe(true)
  one.charge(one.check('a'), 1_000)
  expect(one.check('a').retryAfterMs).toBeLessThanOrEqual(2_100)
  await close()
})

test('a rejected client that waits as told is let in', async () => {
  const { one, world, close } = await two({ algorithm: tokenBucket({ burst: 20 }) })
  for (let round = 0; round < 5; round++) {
    offer(one, 'a', 100)
    const rejected = one.check('a')
    expect(rejected).toMatchObject({ allowed: false, reason: 'limit', remaining: 0 })
    await world.run(rejected.retryAfterMs - 2)
    expect(one.peek('a').allowed).toBe(false)
    await world.run(2)
    expect(one.check('a').allowed).toBe(true)
  }
  await close()
})

test('remaining, reset and burst are those of the bucket', async () => {
  const { one, world, close } = await two({ algorithm: tokenBucket({ burst: 20 }) })
  expect(one.check('a', 5)).toMatchObject({ limit: 60, remaining: 15, resetAfterMs: 500 })
  await world.run(200)
  expect(one.peek('a')).toMatchObject({ remaining: 17, resetAfterMs: 300 })
  expect(one.check('a', 21)).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  await close()
})

test('a charge counts beyond what is left, at all nodes; a refund brings back', async () => {
  const { one, other, world, close } = await two()
  one.charge(one.check('a'), 89)
  await world.run(20)
  expect([one.check('a').allowed, other.check('a').allowed]).toEqual([false, false])
  // There are 30 units too many, and a tenth of the bucket must be free.
  expect(other.check('a').retryAfterMs).toBeGreaterThanOrEqual(3_500)
  const here = await two()
  const decisions = Array.from({ length: 60 }, () => here.one.check('a'))
  expect(here.one.check('a').allowed).toBe(false)
  for (const decision of decisions.slice(0, 10)) here.one.refund(decision)
  expect(here.one.check('a').allowed).toBe(true)
  await here.world.run(50)
  expect(here.other.check('a').allowed).toBe(true)
  await here.close()
  await close()
})

test('a reset empties the bucket at all nodes', async () => {
  const { one, other, world, close } = await two()
  offer(one, 'a', 60)
  await world.run(20)
  expect(other.check('a').allowed).toBe(false)
  other.reset('a')
  await world.run(20)
  expect([offer(one, 'a', 25), offer(other, 'a', 25)]).toEqual([25, 25])
  await close()
})

test('usage tells what is in the bucket of all', async () => {
  const { one, other, world, close } = await two()
  offer(one, 'a', 5)
  offer(other, 'a', 7)
  const asked = other.usage('a')
  await world.run(200)
  const used = (await asked)[0]?.used
  // At most two units have drained meanwhile.
  expect(used).toBeLessThanOrEqual(12)
  expect(used).toBeGreaterThanOrEqual(10)
  await close()
})

test('blocks by hand hold at all nodes, and end', async () => {
  const { one, other, world, close } = await two()
  one.block('a', '5s')
  await world.run(20)
  expect(other.check('a')).toMatchObject({ allowed: false, reason: 'blocked' })
  other.unblock('a')
  await world.run(20)
  expect(one.check('a').allowed).toBe(true)
  await close()
})

test('a cooldown begins when the bucket is full, at all nodes', async () => {
  const { one, other, world, close } = await two({ cooldown: 8_000 })
  offer(one, 'a', 61)
  await world.run(20)
  const rejected = other.check('a')
  expect(rejected).toMatchObject({ allowed: false, reason: 'cooldown' })
  await world.run(rejected.retryAfterMs - 50)
  expect(one.check('a').allowed).toBe(false)
  await world.run(60)
  expect([one.check('a').allowed, other.check('a').allowed]).toEqual([true, true])
  await close()
})

test('a changed limit holds from then on, and what is in the bucket stays', async () => {
  const { one, world, close } = await two()
  offer(one, 'a', 50)
  one.update([{ limit: 120, interval: 6_000, algorithm }])
  expect(offer(one, 'a', 100)).toBe(70)
  one.update([{ limit: 30, interval: 6_000, algorithm }])
  expect(one.check('a').allowed).toBe(false)
  await world.run(6_000)
  expect(one.check('a').allowed).toBe(false)
  await close()
})

test('a key with a limit of its own has its own pace, in the store too', async () => {
  const { one, other, world, close } = await two()
  const ask = (node: Node, count: number) => {
    let allowed = 0
    for (let i = 0; i < count; i++) if (node.check('a', { limit: 600 }).allowed) allowed++
    return allowed
  }
  expect(ask(one, 700)).toBe(600)
  await world.run(50)
  // The bucket drains a hundred units per second.
  expect(ask(other, 10)).toBeLessThanOrEqual(6)
  await world.run(3_000)
  expect(ask(other, 400)).toBeGreaterThanOrEqual(295)
  await close()
})

describe('without the store', () => {
  async function away(failMode: 'share' | 'open' | 'closed'): Promise<Scene & { one: Node; other: Node }> {
    const here = await two({ failMode })
    here.store.health = 'rejecting'
    await here.world.run(1_100)
    return here
  }

  test.each([
    ['share', 30],
    ['open', 200],
    ['closed', 0],
  ] as const)('%s', async (failMode, allowed) => {
    const here = await away(failMode)
    expect([offer(here.one, 'a', 200), offer(here.other, 'a', 200)]).toEqual([allowed, allowed])
    if (allowed < 200) expect(here.one.check('a').reason).toBe('storeDown')
    await here.close()
  })

  test('a share goes on at its part of the pace, and nothing is allowed twice when the store is back', async () => {
    const here = await away('share')
    offer(here.one, 'a', 200)
    offer(here.other, 'a', 200)
    await here.world.run(1_000)
    expect([offer(here.one, 'a', 200), offer(here.other, 'a', 200)]).toEqual([5, 5])
    here.store.health = 'up'
    await here.world.run(600)
    const back = offer(here.one, 'a', 200) + offer(here.other, 'a', 200)
    expect(back).toBeLessThanOrEqual(8)
    await here.close()
  })

  test('the store lost its data: the nodes bring it back', async () => {
    const { one, other, world, store, close } = await two()
    offer(one, 'a', 30)
    offer(other, 'a', 30)
    await world.run(100)
    store.hub.lose()
    await world.run(1_100)
    // The other units have drained meanwhile.
    let left = offer(one, 'a', 60)
    await world.run(10)
    left += offer(other, 'a', 60)
    expect(left).toBeGreaterThanOrEqual(10)
    expect(left).toBeLessThanOrEqual(16)
    await close()
  })
})

test('idle keys are forgotten, here and in the store', async () => {
  const { one, world, store, close } = await two()
  for (let key = 0; key < 20; key++) offer(one, `k${key}`, 40)
  await world.run(60_000)
  await close()
  await world.run(60_000)
  expect(store.hub.size).toBe(0)
})

test('a dry run rejects nobody, and counts who would have been', async () => {
  const { one, other, world, close } = await two({ dryRun: true })
  expect(offer(one, 'a', 80)).toBe(80)
  await world.run(50)
  expect(offer(other, 'a', 5)).toBe(5)
  expect([one, other].map((node) => snapshot(node).policies[0]?.rejected)).toEqual([20, 5])
  await close()
})

test('a snapshot tells what a key owes', async () => {
  const { one, other, world, store, close } = await two()
  store.roundTrip = 200
  offer(one, 'a', 60)
  offer(other, 'a', 60)
  await world.run(1_000)
  const { debt, overshoot } = snapshot(one).policies[0] ?? { debt: 0, overshoot: 0 }
  expect(debt).toBeGreaterThan(45)
  expect(debt).toBeLessThanOrEqual(51)
  expect(overshoot).toBe(0)
  await world.run(6_000)
  expect(snapshot(one).policies[0]?.debt).toBe(0)
  await close()
})

test('an answer that is overdue is asked for again, and what was sent counts once', async () => {
  const { one, other, world, store, close } = await two()
  store.health = 'hanging'
  expect(offer(one, 'a', 3)).toBe(3)
  await world.run(60)
  store.health = 'up'
  // The storeTimeout of the lost sync is still far away.
  expect(offer(one, 'a', 1)).toBe(1)
  await world.run(20)
  const used = await Promise.all([other.usage('a'), world.run(100)])
  expect(used[0][0]?.used).toBeGreaterThan(2)
  expect(used[0][0]?.used).toBeLessThanOrEqual(4)
  await close()
})

test('an answer that is late is not waited for', async () => {
  const { one, other, world, store, close } = await two()
  // The first answer shows how long answers take.
  expect(offer(one, 'a', 15)).toBe(15)
  await world.run(20)
  store.health = 'hanging'
  expect(offer(one, 'a', 15)).toBe(15)
  await world.run(15)
  store.health = 'up'
  expect(offer(one, 'a', 15)).toBe(15)
  await world.run(10)
  const [[usage]] = await Promise.all([other.usage('a'), world.run(100)])
  expect(usage?.used).toBeGreaterThan(44)
  await close()
})

test('an idle key wakes nobody but at the ends of spans', async () => {
  const { one, world, close } = await two()
  offer(one, 'a', 30)
  await world.run(1_000)
  let timers = 0
  const { clock } = one
  const setTimeout = clock.setTimeout.bind(clock)
  clock.setTimeout = (...given) => {
    timers++
    return setTimeout(...given)
  }
  await world.run(5_000)
  // There are five heartbeats with their replies, and five spans.
  expect(timers).toBeLessThanOrEqual(30)
  await close()
})
