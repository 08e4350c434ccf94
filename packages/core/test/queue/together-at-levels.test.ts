import { describe, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { concurrency, leakyBucket, tokenBucket } from '../../src/index.ts'
import { central, flood } from '../support/central-queues.ts'
import { ask, type Held } from '../support/held.ts'
import type { Node } from '../support/nodes.ts'
import type { Waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

type Policy = Partial<PolicyOptions<never>>
const SECOND: Policy = { name: 'second', limit: 100, interval: 1_000 }
const LONG: Policy = { name: 'long', limit: 300, interval: 4_000 }

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

  test('twelve nodes wait equally long', async () => {
    const it = await central(12, [SECOND, LONG])
    flood(it.queues, 600)
    await it.world.run(12_000)
    const waits = it.queues.map(({ ended }) => ended.reduce((sum, { at }) => sum + (at as number) - 20_000, 0) / ended.length)
    expect(it.queues.map(({ ended }) => ended.length)).toEqual(Array.from({ length: 12 }, () => 50))
    expect(Math.max(...waits) / Math.min(...waits)).toBeLessThanOrEqual(1.5)
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
    // A margin of 10 ms, because a reply that is used a moment later counts from then.
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
    // All wait for what they share.
    for (let i = 0; i < 100; i++) queue.acquire(`first ${i}`)
    await it.world.run(100)
    for (let i = 0; i < 60; i++) queue.acquire(i % 2 === 0 ? 'a' : 'b', { timeout: '5s' })
    await it.world.run(2_000)
    expect(queue.went).toHaveLength(160)
    for (const key of ['a', 'b']) expect(it.nodes[0]?.peek(key, 0).parts[1]?.remaining, key).toBe(0)
    await it.close()
  })

  test('one that is aborted meanwhile gives its own units back, and no other', async () => {
    const it = await central(
      1,
      [
        { ...SECOND, interval: 60_000 },
        { ...LONG, interval: 60_000 },
      ],
      20,
    )
    const [queue] = it.queues as [Waiting]
    const controller = new AbortController()
    for (let i = 0; i < 12; i++) queue.acquire('a', i === 8 ? { name: 'aborted', signal: controller.signal } : {})
    await it.world.run(30)
    controller.abort()
    await it.world.run(100)
    expect(queue.went).toHaveLength(11)
    expect(queue.went).not.toContain('aborted')
    const used = it.nodes[0]?.usage('a')
    await it.world.run(100)
    expect((await used)?.map((one) => one.used)).toEqual([11, 11])
    await it.close()
  })

  test.each(['share', 'closed', 'open'] as const)(
    'after a lost answer the store counts those that went, and no others: %s',
    async (failMode) => {
      const it = await central(
        1,
        [
          { ...SECOND, limit: 60, interval: 60_000, failMode },
          { ...LONG, interval: 60_000, failMode },
        ],
        20,
      )
      const [queue] = it.queues as [Waiting]
      for (let i = 0; i < 30; i++) queue.acquire('a', { timeout: '2s' })
      await it.world.run(10)
      it.store.health = 'mute'
      await it.world.run(15)
      expect(Math.max(...it.asked())).toBeGreaterThan(1)
      await it.world.run(500)
      it.store.health = 'up'
      await it.world.run(4_000)
      const went = queue.went.length
      expect(queue.ended).toHaveLength(30)
      const used = it.nodes[0]?.usage('a')
      await it.world.run(100)
      expect((await used)?.map((one) => one.used)).toEqual([went, went])
      await it.close()
    },
  )

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

const PACE: Policy = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket() }

describe('a bucket gives places ahead, and the other policies decide when these have come', () => {
  test.each([2, 20])('in a flood nobody goes too early, and nodes wait equally long: %i ms', async (roundTrip) => {
    const it = await central(12, [PACE, { ...LONG, limit: 5_000, interval: 60_000 }], roundTrip)
    flood(it.queues, 600)
    await it.world.run(8_000)
    const ended = it.queues.flatMap(({ ended }) => ended)
    const went = ended.map(({ at }) => at as number).sort((a, b) => a - b)
    expect(went).toHaveLength(600)
    for (let i = 0; i + 50 < went.length; i++) expect((went[i + 50] as number) - (went[i] as number)).toBeGreaterThanOrEqual(490)
    expect(Math.max(...went)).toBeLessThanOrEqual(26_000 + 3 * roundTrip)
    for (const { decision } of ended)
      expect(decision?.parts.map(({ policy, delayMs: delay }) => [policy?.name, delay])).toEqual([
        ['pace', 0],
        ['long', 0],
      ])
    const waits = it.queues.map(({ ended }) => ended.reduce((sum, { at }) => sum + (at as number) - 20_000, 0) / ended.length)
    expect(Math.max(...waits) / Math.min(...waits)).toBeLessThanOrEqual(1.5)
    // One for each by the window, and one for some by the bucket.
    expect(it.asked().length).toBeLessThanOrEqual(1.4 * 600)
    await it.close()
  })

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
      // As soon as there is room again they go on at the pace.
      expect(Math.max(...went)).toBeLessThanOrEqual(23_000 + 150)
      expect(it.asked().length).toBeLessThanOrEqual(140)
      await it.close()
    },
  )

  test('a window that is full for one key holds up no other one, and no places are taken for it', async () => {
    const it = await central(1, [{ ...PACE, key: 'all' } as Policy, { ...LONG, limit: 20, interval: 10_000, coordination: 'local' }])
    const [queue] = it.queues as [Waiting]
    // One of each key after another; of one there are more than may go.
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

  test('one that is aborted while the others decide gives back what they counted', async () => {
    const it = await central(1, [PACE, { ...LONG, interval: 60_000 }], 20)
    const [queue] = it.queues as [Waiting]
    const controller = new AbortController()
    for (let i = 0; i < 10; i++) queue.acquire('a', i === 7 ? { name: 'aborted', signal: controller.signal } : { name: String(i) })
    // Its place has come, and the store is asked about the window.
    while (queue.went.length < 6) await it.world.run(1)
    await it.world.run(5)
    controller.abort()
    await it.world.run(500)
    expect(queue.went).toEqual(['0', '1', '2', '3', '4', '5', '6', '8', '9'])
    const used = it.nodes[0]?.usage('a')
    await it.world.run(100)
    expect((await used)?.[1]?.used).toBe(9)
    expect(it.nodes[0]?.waiting).toBe(0)
    await it.close()
  })

  test.each(['finish', 'reject'] as const)('while it closes nobody is left: %s', async (onClose) => {
    const it = await central(1, [PACE, { ...LONG, interval: 60_000 }], 20, { queue: { onClose } })
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 300; i++) queue.acquire('a')
    await it.world.run(305)
    const went = queue.went.length
    const closed = it.nodes[0]?.close()
    await it.world.run(2_000)
    await closed
    expect(queue.ended).toHaveLength(300)
    expect(queue.ended.filter(({ failure }) => failure === 'closed').length).toBe(300 - queue.went.length)
    expect(queue.went.length).toBeGreaterThanOrEqual(onClose === 'finish' ? went + 50 : went)
    expect(queue.went.length).toBeLessThanOrEqual(onClose === 'finish' ? went + 110 : went + 3)
    await it.close()
  })

  test.each(['share', 'open', 'closed'] as const)('without the store it goes on by the choice of each policy: %s', async (failMode) => {
    const it = await central(
      1,
      [
        { ...PACE, failMode },
        { ...LONG, limit: 50, interval: 60_000, failMode },
      ],
      20,
    )
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 80; i++) queue.acquire('a', { timeout: '2s' })
    await it.world.run(200)
    it.store.health = 'mute'
    await it.world.run(4_000)
    expect(queue.ended).toHaveLength(80)
    const went = queue.went.length
    if (failMode === 'closed') expect(went).toBeLessThanOrEqual(25)
    else expect(went).toBe(failMode === 'share' ? 50 : 80)
    await it.close()
  })

  test('one that other policies count too gets no place of one that the bucket alone counts', async () => {
    const it = await central(1, [
      { ...PACE, algorithm: tokenBucket({ burst: 1 }), delay: '4s' },
      { ...LONG, interval: 60_000 },
    ])
    const [[node], [queue]] = [it.nodes as [Node], it.queues as [Waiting]]
    // The queue is loaded first.
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

  test('while it closes who is rejected when its place has come waits no more', async () => {
    const it = await central(1, [PACE, { ...LONG, limit: 8, interval: 10_000, coordination: 'local' }], 20)
    const [queue] = it.queues as [Waiting]
    // Until its place comes the window looks as if there were room.
    for (let i = 0; i < 20; i++) queue.acquire('a', { timeout: '30s' })
    await it.world.run(75)
    const closed = it.nodes[0]?.close()
    await it.world.run(1_500)
    await closed
    expect(queue.ended).toHaveLength(20)
    expect(queue.went.length).toBeLessThanOrEqual(8)
    expect(queue.ended.every(({ failure, decision }) => decision?.allowed === true || failure === 'closed')).toBe(true)
    await it.close()
  })
})
