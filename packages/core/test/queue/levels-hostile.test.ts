import { describe, expect, test, vi } from 'vitest'
import type { AnyPolicyOptions, PolicyOptions } from '../../src/decide/policy.ts'
import { concurrency, leakyBucket } from '../../src/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { central, flood } from '../support/central-queues.ts'
import type { Node } from '../support/nodes.ts'
import { Chance } from '../support/queue-chaos.ts'
import type { Waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

type Policy = Partial<PolicyOptions<never>>
const PACE = { name: 'pace', limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 0 }), coordination: 'central' } as const
const SHARED = { ...PACE, key: 'all' } as object
const WINDOW = { name: 'window', limit: 1_000, interval: 60_000, coordination: 'central' } as const

test.each([
  [1, 5_000],
  [50, 5_000],
  [50, 100],
])('a key that the store can not read for one of the policies: few questions, and all end in time: %i requests', async (count, limit) => {
  const it = await central(1, [
    { ...SHARED, limit },
    { ...WINDOW, limit: 100, interval: 10_000, failMode: 'closed' },
  ])
  const [queue] = it.queues as [Waiting]
  it.store.unreadable.add('a')
  for (let i = 0; i < count; i++) queue.acquire('a', { timeout: '1s' })
  await it.world.run(8_000)
  expect(queue.ended).toHaveLength(count)
  expect(it.nodes[0]?.waiting).toBe(0)
  for (const { at } of queue.ended) expect((at as number) - 20_000).toBeLessThanOrEqual(1_100)
  expect(it.asked().length).toBeLessThanOrEqual(500)
  await it.close()
})

test.each([{ coordination: 'local' }, { dryRun: true }])('a bucket that is another one while requests are held: %o', async (change) => {
  const pace = { ...SHARED, algorithm: leakyBucket({ burst: 5 }) }
  const own = { name: 'own', limit: 1_000, interval: '1h', coordination: 'local' }
  const it = await central(1, [pace, own] as Policy[])
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 8; i++) queue.acquire('a', { name: 'a' })
  await it.world.run(250)
  it.nodes[0]?.update([{ ...pace, ...change }, own, WINDOW] as AnyPolicyOptions[])
  for (let i = 0; i < 8; i++) queue.acquire('b', { name: 'b' })
  await it.world.run(10_000)
  expect(queue.went).toHaveLength(16)
  // Each has a decision about its own key.
  for (const { name, decision } of queue.ended)
    for (const { policy, key } of decision?.parts ?? []) expect(key).toBe(policy?.name === 'pace' ? 'all' : name)
  await it.close()
})

test.each(['finish', 'reject'] as const)('a throttler closes in time, whoever waits again at that moment: %s', async (onClose) => {
  for (let when = 20; when < 400; when += 13) {
    const options = { queue: { onClose }, closeTimeout: 500 } as const
    const it = await central(
      1,
      [
        { ...PACE, limit: 400 },
        { ...WINDOW, limit: 20, interval: 100, failMode: 'closed' },
      ],
      20,
      options,
    )
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 200; i++) queue.acquire('a')
    await it.world.run(when)
    if (when % 2 === 0) it.store.unreadable.add('a')
    const begun = it.world.time
    let closed = Number.POSITIVE_INFINITY
    void it.nodes[0]?.close().then(() => (closed = it.world.time))
    await it.world.run(3_000)
    expect(closed - begun, `after ${when} ms`).toBeLessThanOrEqual(onClose === 'reject' ? 150 : 650)
    expect(queue.ended).toHaveLength(200)
  }
})

describe('a second pace', () => {
  test.each(['local', 'central'] as const)('holds nobody of another key: %s', async (coordination) => {
    const slow = { name: 'slow', limit: 1, interval: 8_000, coordination, algorithm: leakyBucket({ burst: 10 }) }
    const it = await central(1, [{ ...SHARED, limit: 100 }, slow])
    const [queue] = it.queues as [Waiting]
    for (const name of ['a0', 'a1']) queue.acquire('a', { name })
    await it.world.run(200)
    for (let i = 0; i < 20; i++) queue.acquire(`b${i}`, { name: 'b', timeout: '5s' })
    await it.world.run(10_000)
    expect(queue.went.filter((name) => name === 'b')).toHaveLength(20)
    await it.close()
  })

  test.each(['local', 'central'] as const)('leaves the order as it is: %s', async (coordination) => {
    const slow = { name: 'slow', limit: 4, interval: 1_000, coordination, algorithm: leakyBucket({ burst: 10 }) }
    const it = await central(1, [{ ...PACE, algorithm: leakyBucket({ burst: 5 }) }, slow])
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 30; i++) queue.acquire('a', { name: String(i) })
    await it.world.run(30_000)
    expect(queue.went).toEqual(Array.from({ length: 30 }, (_, i) => String(i)))
    await it.close()
  })

  test.each(['finish', 'reject'] as const)('lets the throttler close in time: %s', async (onClose) => {
    for (let when = 65; when <= 95; when += 5) {
      const slow = { name: 'slow', limit: 1, interval: 10_000, algorithm: leakyBucket({ burst: 10 }) }
      const options = { queue: { onClose, maxWait: '10m' }, closeTimeout: '1s' } as const
      const it = await central(1, [{ ...PACE, limit: 100 }, slow], 30, options)
      const [queue] = it.queues as [Waiting]
      for (let i = 0; i < 3; i++) queue.acquire('a', { timeout: '5m' })
      await it.world.run(when)
      const begun = it.world.time
      let closed = Number.POSITIVE_INFINITY
      void it.nodes[0]?.close().then(() => (closed = it.world.time))
      await it.world.run(5_000)
      expect(closed - begun, `after ${when} ms`).toBeLessThanOrEqual(onClose === 'reject' ? 200 : 1_300)
      expect(queue.ended).toHaveLength(3)
    }
  })
})

describe('who is rejected when its place has come waits again as the first', () => {
  test.each(['local', 'central'] as const)('where the window was filled meanwhile: %s', async (coordination) => {
    const it = await central(1, [PACE, { name: 'window', limit: 10, interval: 1_000, coordination, key: 'all' } as object])
    const [queue] = it.queues as [Waiting]
    queue.acquire('a')
    const first = queue.acquire('a', { timeout: '2s' })
    for (let i = 0; i < 100; i++) queue.acquire('a')
    await it.world.run(50)
    for (let i = 0; i < 9; i++) queue.acquire(`b${i}`)
    await it.world.run(3_000)
    expect(first.failure).toBeUndefined()
    expect(first.decision?.allowed).toBe(true)
    await it.close()
  })

  test('where it was blocked by hand, and as many wait as may', async () => {
    const it = await central(1, [PACE, WINDOW], 2, { queue: { maxWaitingPerKey: 10 } })
    const [queue] = it.queues as [Waiting]
    queue.acquire('a')
    const first = queue.acquire('a')
    await it.world.run(20)
    for (let i = 0; i < 10; i++) queue.acquire('a')
    await it.world.run(20)
    it.nodes[0]?.block('a', '300ms', { policy: 'window' })
    await it.world.run(1)
    for (let i = 0; i < 10; i++) queue.acquire('a')
    await it.world.run(10_000)
    expect(first.decision?.allowed).toBe(true)
    await it.close()
  })
})

describe('what was counted here comes back when the store rejects', () => {
  test('though the policies are told anew meanwhile', async () => {
    const window = { ...WINDOW, limit: 20 }
    const own = { name: 'own', limit: 1_000, interval: 60_000, coordination: 'local' }
    const slots = { name: 'slots', limit: 30, algorithm: concurrency(), coordination: 'local', interval: undefined }
    const policies = [window, own, slots] as unknown as AnyPolicyOptions[]
    const it = await central(2, policies as unknown as Policy[], 20)
    const [node, other] = it.nodes as [Node, Node]
    const [queue] = it.queues as [Waiting]
    // This node doesn't know of these.
    for (let i = 0; i < 18; i++) void other.checkAsync('a')
    for (let i = 0; i < 12; i++) queue.acquire('a', { timeout: '200ms' })
    for (let t = 0; t < 100; t++) {
      await it.world.run(2)
      if (t % 3 === 0) for (const one of it.nodes) one.update(policies)
    }
    await it.world.run(1_000)
    expect(queue.ended).toHaveLength(12)
    expect(
      node
        .peek('a', 0)
        .parts.map(({ remaining }) => remaining)
        .slice(1),
    ).toEqual([1_000 - queue.went.length, 30 - queue.went.length])
    await it.close()
  })

  test('and does not count as allowed', async () => {
    const it = await central(3, [
      { name: 'window', limit: 100, interval: 1_000 },
      { name: 'own', limit: 10_000, interval: 60_000, coordination: 'local' },
    ])
    flood(it.queues, 600)
    await it.world.run(12_000)
    for (const [place, node] of it.nodes.entries())
      expect(snapshot(node).policies[1]).toMatchObject({ name: 'own', allowed: it.queues[place]?.went.length })
    await it.close()
  })
})

describe('who came first goes first', () => {
  test.each([
    [20, 40],
    [20, 20],
    [2, 20],
    [20, 10],
  ])('where a window begins while it is asked about: %i ms, %i', async (roundTrip, limit) => {
    const it = await central(
      1,
      [
        { ...PACE, limit: 400 },
        { ...WINDOW, limit, interval: 100 },
      ],
      roundTrip,
    )
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 300; i++) queue.acquire('a', { name: String(i) })
    await it.world.run(20_000)
    expect(queue.went).toEqual(Array.from({ length: 300 }, (_, i) => String(i)))
    await it.close()
  })

  test.each([1, 5, 6, 10, 11])('where questions are answered in another order: seed %i', async (seed) => {
    const chance = new Chance(seed)
    const windows = [
      { name: 'half', limit: 20, interval: 500 },
      { name: 'tenth', limit: 10, interval: 100 },
    ]
    const it = await central(3, windows, chance.pick(2, 20))
    let number = 0
    for (let at = 0; at < 600; at += 10) {
      for (let left = chance.pick(0, 1, 2, 3); left > 0; left--)
        it.queues[Math.floor(chance.random() * 3)]?.acquire('a', { name: String(number++) })
      await it.world.run(10)
    }
    await it.world.run(15_000)
    expect(it.queues.flatMap(({ went }) => went)).toHaveLength(number)
    for (const { went } of it.queues) expect(went).toEqual(went.toSorted((a, b) => Number(a) - Number(b)))
    await it.close()
  })
})
