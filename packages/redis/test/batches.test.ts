import type { Ordinal, StorePolicy, SyncEntry } from '@weir/core/sync'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { MOST_HOT } from '../src/keys/keys.ts'
import { PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

const HOT: StorePolicy = { ...POLICY, id: 'hot', hot: 10 }

function entry(
  key: string,
  taken: number,
  ordinal: Ordinal,
  { policy = HOT, given = 0 }: { policy?: StorePolicy; given?: number } = {},
): SyncEntry {
  return { policy, key, cells: [{ ordinal, taken, given }] }
}

async function totals(node: TestNode, entries: readonly SyncEntry[]): Promise<(number | undefined)[]> {
  const { results } = await node.connection.sync({ entries, blocks: [] })
  return results.map((result) => result && (result.cells[0]?.taken ?? 0) - (result.cells[0]?.given ?? 0))
}

const NO_MORE = 'no more'

/** Two processes of a store, and a function that resolves with all messages that its scripts have published so far. */
async function open(namespace: string): Promise<{ a: TestNode; b: TestNode; messages: () => Promise<string[]> }> {
  const store = redisStore(here.server.url, { ...PATIENT, namespace })
  const [a, b] = [new TestNode(store), new TestNode(store)]
  const heard: string[] = []
  const channel = `${namespace}:1:0`
  const listener = new Redis(here.server.port)
  await listener.subscribe(channel)
  listener.on('message', (_, message: string) => heard.push(message))
  await here.listening(namespace, 3)
  // The processes use other connections, so their messages may not have arrived here yet. This last message arrives after them.
  const messages = async (): Promise<string[]> => {
    await here.admin.publish(channel, NO_MORE)
    await until(() => heard.includes(NO_MORE), 'the last message has come')
    return heard.filter((message) => message !== NO_MORE)
  }
  return { a, b, messages }
}

test('what the keys of a call have to tell goes out in one message, and the node that caused it does not hear it again', async () => {
  const { a, b, messages } = await open('together')
  const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`)
  await totals(
    a,
    keys.map((key) => entry(key, 12, a.ordinal)),
  )
  await until(() => b.announcements.length === 30, 'the other node hears of all keys')
  expect(await messages()).toHaveLength(1)
  expect(b.announcements).toEqual(
    keys.map((key) => ({ type: 'total', policyId: 'hot', key, cells: [{ ordinal: a.ordinal, taken: 12, given: 0 }] })),
  )
  await totals(b, [entry('last', 12, a.ordinal)])
  await until(() => a.announcements.length > 0, 'the first node hears of the other one')
  expect(a.announcements.map(({ key }) => key)).toEqual(['last'])
  await Promise.all([a.close(), b.close()])
})

test('keys of two policies that become hot in one call are told apart', async () => {
  const { a, b, messages } = await open('two')
  const other = { ...HOT, id: 'other' }
  await totals(a, [entry('k', 12, a.ordinal), entry('k', 13, a.ordinal, { policy: other })])
  await until(() => b.announcements.length === 2, 'both are announced')
  expect(await messages()).toHaveLength(2)
  expect(b.announcements.map(({ policyId, key }) => `${policyId} ${key}`).sort()).toEqual(['hot k', 'other k'])
  await Promise.all([a.close(), b.close()])
})

test('counts of many nodes in one cell add up, whoever writes in whatever order', async () => {
  const { a, b } = await open('many')
  const { ordinal } = a
  expect(await totals(a, [entry('k', 5, ordinal)])).toEqual([5])
  expect(await totals(b, [entry('k', 0.5, ordinal)])).toEqual([5.5])
  expect(await totals(a, [entry('k', 9, ordinal)])).toEqual([9.5])
  expect(await totals(b, [entry('k', 100, ordinal, { given: 40 })])).toEqual([69])
  expect(await totals(a, [entry('k', 8, ordinal)])).toEqual([69])
  expect(await totals(b, [entry('k', 100, ordinal, { given: 39.5 })])).toEqual([69])
  expect(await totals(b, [entry('k', 0, ordinal)])).toEqual([69])
  expect(await here.admin.get(`many:{1.0.0}:c:hot:k:${ordinal}`)).toBe('69')
  await Promise.all([a.close(), b.close()])
})

test('a key that stands twice in one batch counts once, the larger count', async () => {
  const { a, b } = await open('twice')
  const { ordinal } = a
  expect(await totals(a, [entry('k', 7, ordinal), entry('l', 1, ordinal), entry('k', 5, ordinal)])).toEqual([7, 1, 7])
  expect(await totals(a, [entry('k', 8, ordinal), entry('k', 9, ordinal), entry('k', 9, ordinal)])).toEqual([8, 9, 9])
  expect(await totals(b, [entry('k', 0, ordinal)])).toEqual([9])
  const cells = [12, 11].map((taken) => ({ ordinal, taken, given: 0 }))
  expect(await totals(a, [{ policy: HOT, key: 'k', cells }])).toEqual([12])
  expect(await totals(b, [entry('k', 0, ordinal)])).toEqual([12])
  await Promise.all([a.close(), b.close()])
})

test('what somebody else wrote into a cell counts as nothing', async () => {
  const { a, b } = await open('foreign')
  const { ordinal } = a
  const cell = `foreign:{1.0.0}:n:hot:k:${ordinal}`
  for (const nonsense of ['', ' ', 'x', '5', 'a b:c', ':: :', `1e400 ${a.id}:x`, '7:8:9 ::', 'nan nan:nan']) {
    await here.admin.set(cell, nonsense, 'PX', 60_000)
    await here.admin.set(`foreign:{1.0.0}:c:hot:k:${ordinal}`, nonsense, 'PX', 60_000)
    for (const taken of [3, 4]) {
      const [total] = await totals(a, [entry('k', taken, ordinal)])
      expect(typeof total, nonsense).toBe('number')
    }
    await here.admin.del(cell)
    expect(await totals(a, [entry('k', 5, ordinal)])).toEqual([5])
  }
  await here.admin.del(cell)
  await here.admin.hset(cell, 'field', 'of another type')
  expect(await totals(a, [entry('k', 6, ordinal)])).toEqual([6])
  expect(await here.admin.pttl(cell)).toBeGreaterThan(0)
  await Promise.all([a.close(), b.close()])
})

test('all keys that become hot are announced, and as many are remembered as a node is handed at its start', async () => {
  const { a, b } = await open('flood')
  const count = MOST_HOT + 500
  for (let from = 0; from < count; from += 500) {
    await totals(
      a,
      Array.from({ length: 500 }, (_, i) => entry(`key ${from + i}`, 12, a.ordinal)),
    )
  }
  await until(() => b.announcements.length === count, 'all are announced')
  const kept = await here.admin.zcard('flood:{1.0.0}:hot')
  expect(kept).toBeGreaterThanOrEqual(MOST_HOT)
  expect(kept).toBeLessThan(count)
  await Promise.all([a.close(), b.close()])
})
