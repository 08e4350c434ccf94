import { expect, test } from 'vitest'
import { leakyBucket, tokenBucket } from '../../src/index.ts'
import { allowed, ask } from '../support/central.ts'
import { type CentralNodes, central } from '../support/central-queues.ts'
import type { Node } from '../support/nodes.ts'
import type { Waiting } from '../support/waiting.ts'

const CLOSED = { name: 'closed', limit: 50, interval: 60_000, failMode: 'closed', key: 'all' } as const

/** The number of questions to the store in each second, with 50 requests per second. */
async function questions(it: CentralNodes, request: () => void, seconds: number): Promise<number[]> {
  const asked: number[] = []
  for (let second = 0; second < seconds; second++) {
    const before = it.store.decided.length
    for (let i = 0; i < 50; i++) {
      request()
      await it.world.run(20)
    }
    asked.push(it.store.decided.length - before)
  }
  return asked
}

test.each<[string, readonly object[]]>([
  ['alone', [CLOSED]],
  ['beside a bucket that the store decides about', [CLOSED, { name: 'fast', limit: 1_000, algorithm: leakyBucket() }]],
  ['beside a token bucket', [CLOSED, { name: 'fast', limit: 1_000, algorithm: tokenBucket({ burst: 1 }) }]],
  ['beside a bucket of this process', [CLOSED, { name: 'fast', limit: 1_000, coordination: 'local', algorithm: leakyBucket() }]],
])('a key that the store can not read is asked about less and less, whatever waits for it: %s', async (_, policies) => {
  const it = await central(1, policies as never)
  const [[queue], [node]] = [it.queues as [Waiting], it.nodes as [Node]]
  it.store.unreadable.add('all')
  const waiting = await questions(it, () => queue.acquire('a', { timeout: '5s' }), 6)
  // Many requests share a question with it, and the key is tried again after 200, 400, 800 … ms.
  expect(Math.max(...waiting)).toBeLessThanOrEqual(40)
  const checked = await questions(it, () => void node.checkAsync('b').catch(() => {}), 6)
  expect(checked.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(40)
  expect(queue.went).toEqual([])
  // After the current pause the key is read again, and the store decides.
  it.store.unreadable.clear()
  await it.world.run(30_000)
  expect(allowed(await ask(it, node, 'c', 1))).toBe(1)
  const usage = node.usage('c')
  await it.world.run(200)
  expect((await usage)[0]).toMatchObject({ used: 1, source: 'store' })
  await it.close()
})

test('a key that the store can not read pauses no other one that is asked about together with it', async () => {
  const it = await central(1, [CLOSED, { name: 'own', limit: 5, interval: 60_000 }] as never)
  const [node] = it.nodes as [Node]
  it.store.unreadable.add('bad')
  for (let i = 0; i < 3; i++) await ask(it, node, 'bad', 1)
  expect(allowed(await ask(it, node, 'good', 5))).toBe(5)
  expect(allowed(await ask(it, node, 'good', 1))).toBe(0)
  await it.close()
})
