import { describe, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { leakyBucket, tokenBucket } from '../../src/index.ts'
import { central, flood } from '../support/central-queues.ts'
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
      for (const part of decision?.parts ?? []) expect(part).toMatchObject({ allowed: true, cost: 1, delay: 0 })
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

  test('what one policy refuses counts at no other', async () => {
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
    // Of 10 ms; an answer that is decided upon a moment later counts from then.
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
    async (degraded) => {
      const it = await central(
        1,
        [
          { ...SECOND, limit: 60, interval: 60_000, degraded },
          { ...LONG, interval: 60_000, degraded },
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
    ['quota that is taken ahead', { coordination: 'leases' }],
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
