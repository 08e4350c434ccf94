import { describe, expect, test, vi } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { AnyPolicyOptions, PolicyOptions } from '../../src/decide/policy.ts'
import { concurrency, leakyBucket } from '../../src/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { central, flood } from '../support/central-queues.ts'
import { ask, type Held } from '../support/held.ts'
import { type Node, scene } from '../support/nodes.ts'
import { mostInASecond, startTimes, type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

type Policy = Partial<PolicyOptions<never>>

const STRICT_PACE = { name: 'pace', limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 0 }), coordination: 'central' } as const

const SHARED_PACE = { ...STRICT_PACE, key: 'all' } as object

const LONG_WINDOW = { name: 'window', limit: 1_000, interval: 60_000, coordination: 'central' } as const

const SECOND: Policy = { name: 'second', limit: 100, interval: 1_000 }

const LONG: Policy = { name: 'long', limit: 300, interval: 4_000 }

const PACE: Policy = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket() }

describe('a request', () => {
  test('of many policies goes when all of them have room', async () => {
    const it = scene()
    const node = it.node([
      { name: 'key', ...LOCAL, limit: 1, interval: 300 },
      { name: 'all', ...LOCAL, key: 'all', limit: 3, interval: 1_000 },
    ])
    const queue = await waiting(it, node)
    const a = [0, 1, 2, 3].map(() => queue.acquire('a'))
    const b = [0, 1].map(() => queue.acquire('b'))
    await it.world.run(3_000)
    expect(a.map(({ at }) => at)).toEqual([0, 300, 1_000, 1_200])
    expect(b.map(({ at }) => at)).toEqual([0, 1_000])
    await it.close()
  })
})

test('a request to several policies waits for its place at the one that has places, and leaves none behind', async () => {
  const it = scene()
  it.store.roundTrip = 2
  const policies = [
    { name: 'hour', limit: 1_000, interval: 3_600_000 },
    { name: 'pace', limit: 10, interval: 1_000, algorithm: tokenBucket({ burst: 1 }) },
  ] as const
  const nodes = [it.node(policies), it.node(policies), it.node(policies)]
  for (const node of nodes) node.start()
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(2_100)
  for (const queue of queues) for (let i = 0; i < 4; i++) queue.acquire('a')
  await it.world.run(2_000)
  const went = startTimes(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(12)
  expect(mostInASecond(went)).toBeLessThanOrEqual(11)
  expect(went.at(-1)).toBeLessThanOrEqual(2_100 + 1_100 + 22)
  // There are no more questions, and the bucket has no units.
  const before = it.store.requests.flatMap(({ request }) => request.entries).length
  await it.world.run(5_000)
  expect(it.store.requests.flatMap(({ request }) => request.entries).length - before).toBeLessThanOrEqual(30)
  expect(nodes.map((node) => node.peek('a').parts[1]?.remaining)).toEqual([1, 1, 1])
  await it.close()
})

test.each([{ coordination: 'local' }, { dryRun: true }])('a bucket that is another one while requests are held: %o', async (change) => {
  const pace = { ...SHARED_PACE, algorithm: leakyBucket({ burst: 5 }) }
  const own = { name: 'own', limit: 1_000, interval: '1h', coordination: 'local' }
  const it = await central(1, [pace, own] as Policy[])
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 8; i++) queue.acquire('a', { name: 'a' })
  await it.world.run(250)
  it.nodes[0]?.update([{ ...pace, ...change }, own, LONG_WINDOW] as AnyPolicyOptions[])
  for (let i = 0; i < 8; i++) queue.acquire('b', { name: 'b' })
  await it.world.run(10_000)
  expect(queue.went).toHaveLength(16)
  // Each request has a decision about its own key.
  for (const { name, decision } of queue.ended)
    for (const { policy, key } of decision?.parts ?? []) expect(key).toBe(policy?.name === 'pace' ? 'all' : name)
  await it.close()
})

describe('a second pace', () => {
  test.each(['local', 'central'] as const)('holds nobody of another key: %s', async (coordination) => {
    const slow = { name: 'slow', limit: 1, interval: 8_000, coordination, algorithm: leakyBucket({ burst: 10 }) }
    const it = await central(1, [{ ...SHARED_PACE, limit: 100 }, slow])
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
    const it = await central(1, [{ ...STRICT_PACE, algorithm: leakyBucket({ burst: 5 }) }, slow])
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 30; i++) queue.acquire('a', { name: String(i) })
    await it.world.run(30_000)
    expect(queue.went).toEqual(Array.from({ length: 30 }, (_, i) => String(i)))
    await it.close()
  })
})

describe('who is rejected when its place has come waits again as the first', () => {
  test.each(['local', 'central'] as const)('where the window was filled meanwhile: %s', async (coordination) => {
    const it = await central(1, [STRICT_PACE, { name: 'window', limit: 10, interval: 1_000, coordination, key: 'all' } as object])
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
    const it = await central(1, [STRICT_PACE, LONG_WINDOW], 2, { queue: { maxWaitingPerKey: 10 } })
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
    const window = { ...LONG_WINDOW, limit: 20 }
    const own = { name: 'own', limit: 1_000, interval: 60_000, coordination: 'local' }
    const slots = { name: 'slots', limit: 30, algorithm: concurrency(), coordination: 'local', interval: undefined }
    const policies = [window, own, slots] as unknown as AnyPolicyOptions[]
    const it = await central(2, policies as unknown as Policy[], 20)
    const [node, other] = it.nodes as [Node, Node]
    const [queue] = it.queues as [Waiting]
    // The other process does not receive these counts in time.
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

describe('requests that several policies count are asked for together', () => {
  test.each<[string, readonly Policy[]]>([
    ['two of the store', [SECOND, LONG]],
    ['one of the store and one in the background', [SECOND, { ...LONG, coordination: 'background' }]],
    ['one of the store and one of each process', [{ ...LONG, coordination: 'local' }, SECOND]],
  ])('a flood costs few questions, and keeps each limit: %s', async (_, policies) => {
    const it = await central(3, policies)
    flood(it.queues, 600)
    await it.world.run(12_000)
    const ended = it.queues.flatMap(({ ended }) => ended)
    const went = ended.map(({ at }) => at as number)
    expect(went).toHaveLength(600)
    const within = (from: number, to: number) => went.filter((at) => at - 1 >= from && at - 1 < to).length
    for (let from = 20_000; from < 32_000; from += 1_000) expect(within(from, from + 1_000), `from ${from}`).toBeLessThanOrEqual(100)
    const most = policies.some(({ coordination }) => coordination === 'local') ? 600 : 300
    for (let from = 20_000; from < 32_000; from += 4_000) expect(within(from, from + 4_000), `from ${from}`).toBeLessThanOrEqual(most)
    expect(it.asked().length).toBeLessThanOrEqual(0.4 * 600)
    for (const { decision } of ended) {
      expect(decision?.parts).toHaveLength(2)
      for (const part of decision?.parts ?? []) expect(part).toMatchObject({ allowed: true, cost: 1, delayMs: 0 })
    }
    await it.close()
  })

  test('what each leaves is told as if they had been asked for one after another', async () => {
    const it = await central(1, [
      { ...SECOND, limit: 40, interval: 60_000 },
      { ...LONG, limit: 30, interval: 60_000, coordination: 'local' },
    ])
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 20; i++) queue.acquire('a')
    await it.world.run(100)
    expect(it.asked().length).toBeLessThan(20)
    const left = queue.ended.map(({ decision }) => decision?.parts.map(({ remaining }) => remaining))
    expect(left).toEqual(Array.from({ length: 20 }, (_, i) => [39 - i, 29 - i]))
    expect(it.nodes[0]?.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([20, 10])
    await it.close()
  })

  test('what one policy rejects counts at no other', async () => {
    const it = await central(2, [
      { ...SECOND, limit: 100, interval: 60_000 },
      { ...LONG, limit: 30, interval: 60_000 },
      { name: 'own', limit: 90, interval: 60_000, coordination: 'local' },
    ])
    for (const [place, queue] of it.queues.entries()) for (let i = 0; i < 40; i++) queue.acquire('a', { name: `${place}`, timeout: '2s' })
    await it.world.run(3_000)
    const went = it.queues.map((queue) => queue.went.length)
    expect(went.reduce((sum, one) => sum + one, 0)).toBe(30)
    const used = it.nodes[0]?.usage('a')
    await it.world.run(100)
    expect((await used)?.slice(0, 2).map((one) => one.used)).toEqual([30, 30])
    for (const [place, node] of it.nodes.entries()) expect(node.peek('a', 0).parts[2]?.remaining).toBe(90 - (went[place] as number))
    await it.close()
  })

  test('each keeps the pace of a bucket', async () => {
    const it = await central(3, [{ ...SECOND, algorithm: leakyBucket({ burst: 30 }) }, LONG])
    flood(it.queues, 200)
    await it.world.run(4_000)
    const went = it.queues.flatMap(({ ended }) => ended.map(({ at }) => at as number)).sort((a, b) => a - b)
    expect(went).toHaveLength(200)
    // Allows a margin of 10 ms, because a reply that is used a moment later counts from then.
    for (let i = 0; i + 50 < went.length; i++) expect((went[i + 50] as number) - (went[i] as number), `${i}`).toBeGreaterThanOrEqual(490)
    await it.close()
  })

  test('costs are those of each policy', async () => {
    const it = await central(1, [
      { ...SECOND, limit: 100, interval: 60_000, cost: 2 } as Policy,
      { ...LONG, limit: 100, interval: 60_000, cost: 3 } as Policy,
    ])
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 20; i++) queue.acquire('a')
    await it.world.run(200)
    expect(queue.went).toHaveLength(20)
    expect(it.asked().length).toBeLessThan(20)
    expect(it.nodes[0]?.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([60, 40])
    await it.close()
  })

  test('those of different keys are not, where a policy counts them apart', async () => {
    const it = await central(1, [
      { ...SECOND, limit: 100, key: 'all' },
      { ...LONG, limit: 30, interval: 60_000 },
    ])
    const [queue] = it.queues as [Waiting]
    // All requests wait for the shared counter.
    for (let i = 0; i < 100; i++) queue.acquire(`first ${i}`)
    await it.world.run(100)
    for (let i = 0; i < 60; i++) queue.acquire(i % 2 === 0 ? 'a' : 'b', { timeout: '5s' })
    await it.world.run(2_000)
    expect(queue.went).toHaveLength(160)
    for (const key of ['a', 'b']) expect(it.nodes[0]?.peek(key, 0).parts[1]?.remaining, key).toBe(0)
    await it.close()
  })

  test.each<[string, Policy]>([
    ['a policy that only watches', { dryRun: true }],
    ['quota that is taken ahead', { coordination: 'leased' }],
    ['a bucket of each process', { coordination: 'local', algorithm: tokenBucket() }],
  ])('beside %s each is asked for alone, and all go', async (_, policy) => {
    const it = await central(1, [SECOND, { ...LONG, ...policy }])
    flood(it.queues, 150)
    await it.world.run(8_000)
    expect(it.queues[0]?.went).toHaveLength(150)
    expect(Math.max(...it.asked())).toBe(1)
    await it.close()
  })
})

describe('a bucket gives places ahead, and the other policies decide when these have come', () => {
  test.each(['central', 'leased', 'local', 'background'] as const)(
    'a window that is full is waited for, in turn: %s',
    async (coordination) => {
      const it = await central(1, [PACE, { ...LONG, limit: 30, interval: 1_000, coordination }])
      const [queue] = it.queues as [Waiting]
      for (let i = 0; i < 100; i++) queue.acquire('a', { name: String(i) })
      await it.world.run(6_000)
      expect(queue.went).toEqual(Array.from({ length: 100 }, (_, i) => String(i)))
      const went = queue.ended.map(({ at }) => at as number)
      for (let from = 20_000; from < 25_000; from += 1_000)
        expect(went.filter((at) => at - 1 >= from && at - 1 < from + 1_000).length, `from ${from}`).toBeLessThanOrEqual(30)
      // As soon as there is capacity again, requests are allowed at the pace.
      expect(Math.max(...went)).toBeLessThanOrEqual(23_000 + 150)
      expect(it.asked().length).toBeLessThanOrEqual(140)
      await it.close()
    },
  )

  test('a window that is full for one key holds up no other one, and no places are taken for it', async () => {
    const it = await central(1, [{ ...PACE, key: 'all' } as Policy, { ...LONG, limit: 20, interval: 10_000, coordination: 'local' }])
    const [queue] = it.queues as [Waiting]
    // Requests of the keys come in turn. One key has more requests than its limit allows.
    for (let i = 0; i < 20; i++) {
      for (const key of ['a', 'b', 'c', 'd', 'full', 'full', 'full', 'full']) queue.acquire(key, { name: key, timeout: '20s' })
    }
    await it.world.run(1_500)
    for (const key of ['full', 'a', 'b', 'c', 'd']) expect(queue.went.filter((name) => name === key)).toHaveLength(20)
    expect(Math.max(...queue.ended.map(({ at }) => at as number))).toBeLessThanOrEqual(21_030)
    await it.close()
  })

  test('slots are taken when the place has come, and come back when the request has ended', async () => {
    const slots = { name: 'slots', limit: 2, interval: undefined, algorithm: concurrency(), coordination: 'local' } as unknown as Policy
    const it = await central(1, [PACE, slots])
    const [node] = it.nodes as [Node]
    let running = 0
    let most = 0
    const ended = Array.from({ length: 40 }, () =>
      node.schedule('a', async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => it.world.setTimer(() => resolve(), 30))
        running--
      }),
    )
    await it.world.run(3_000)
    await Promise.all(ended)
    expect(most).toBe(2)
    expect(running).toBe(0)
    expect(node.peek('a', 0).parts[1]?.remaining).toBe(2)
    await it.close()
  })

  test('one that other policies count too gets no place of one that the bucket alone counts', async () => {
    const it = await central(1, [
      { ...PACE, algorithm: tokenBucket({ burst: 1 }), delay: '4s' },
      { ...LONG, interval: 60_000 },
    ])
    const [[node], [queue]] = [it.nodes as [Node], it.queues as [Waiting]]
    // Loads the queue first.
    let ready = false
    void node.checkAsync('b').then(() => (ready = true))
    for (; !ready; await new Promise(setImmediate)) await it.world.run(1)
    const alone: Held[] = []
    for (let i = 0; i < 80; i++) {
      alone.push(ask(it, node, ['a', undefined]))
      queue.acquire('a')
    }
    await it.world.run(3_000)
    expect(queue.went).toHaveLength(80)
    for (const { decision } of queue.ended) expect(decision?.parts).toHaveLength(2)
    for (const { decision } of alone) {
      expect(decision?.allowed).toBe(true)
      expect(decision?.parts).toHaveLength(1)
    }
    expect(node.peek('a', 0).parts[1]?.remaining).toBe(220)
    await it.close()
  })
})
