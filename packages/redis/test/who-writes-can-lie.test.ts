import { createThrottler, type ThrottlerOptions } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

/** Readable values are believed. These are the bounds of the gain for a client that can write to Redis, or publish. */
const here = ownServer()

const LIMIT = 20

async function start(namespace: string, count: number, options: Partial<ThrottlerOptions> = {}) {
  const nodes = Array.from({ length: count }, () => {
    const throttler = createThrottler({
      store: redisStore(here.server.url, { ...PATIENT, namespace }),
      policies: [{ name: 'p', limit: LIMIT, interval: '1w' }],
      heartbeat: 100,
      ...options,
    })
    onTestFinished(() => throttler.close())
    return throttler.start()
  })
  await expect.poll(() => nodes.map((node) => snapshot(node).nodes), { timeout: 10_000 }).toEqual(nodes.map(() => count))
  // A single process reports the number 1 even before its first sync.
  await expect.poll(() => nodes.every(({ state }) => state === 'synced')).toBe(true)
  await here.listening(namespace, count)
  return nodes
}

const policyOf = async (namespace: string): Promise<string> =>
  /:n:(.+):first:/.exec((await here.admin.keys(`${namespace}:*:n:*:first:*`))[0] ?? '')?.[1] ?? ''

test('a total that is made larger rejects its key, and no other', async () => {
  const namespace = freshNamespace()
  const [node] = await start(namespace, 1)
  for (let i = 0; i < 10; i++) node?.check('key')
  await expect.poll(() => here.admin.keys(`${namespace}:*:n:*`)).toHaveLength(1)
  const [cell = ''] = await here.admin.keys(`${namespace}:*:n:*`)
  await here.admin.set(cell, '1000 liar:1000', 'KEEPTTL')
  // Its own count would allow ten more. `usage()` reads the false total from the store.
  await expect.poll(() => node?.usage('key').then(() => node.peek('key').allowed)).toBe(false)
  expect(node?.check('other').allowed).toBe(true)
})

test('whatever is taken away, no node allows more than the limit by itself', async () => {
  const namespace = freshNamespace()
  const nodes = await start(namespace, 3)
  const allowed = nodes.map(() => 0)
  for (let i = 0; i < 3 * LIMIT; i++) {
    nodes.forEach((node, place) => {
      if (node.check('key').allowed) allowed[place] = (allowed[place] as number) + 1
    })
    const keys = await here.admin.keys(`${namespace}:*`)
    if (keys.length > 0) await here.admin.del(...keys)
  }
  expect(Math.max(...allowed)).toBeLessThanOrEqual(LIMIT)
  expect(nodes.map(({ state }) => state)).toEqual(nodes.map(() => 'synced'))
})

test('who can publish can block keys and lift blocks, and raise totals, of a policy whose name he knows', async () => {
  const namespace = freshNamespace()
  const [node] = await start(namespace, 1)
  for (let i = 0; i < 10; i++) node?.check('first')
  await expect.poll(() => policyOf(namespace)).not.toBe('')
  const policy = (await policyOf(namespace)).replaceAll('%3a', ':')
  const say = (type: string, key: string, content: string) =>
    here.admin.publish(`${namespace}:1:0`, `${type}\nx\n${policy}\n${key}\n${content}`)
  await say('b', 'blocked', '60000')
  await expect.poll(() => node?.peek('blocked').allowed).toBe(false)
  await say('b', 'blocked', '0')
  await expect.poll(() => node?.peek('blocked').allowed).toBe(true)
  const ordinal = Math.floor(Date.now() / (7 * 86_400_000))
  await say('t', 'full', `${ordinal},1000,0`)
  await expect.poll(() => node?.peek('full').allowed).toBe(false)
  expect(node?.check('other').allowed).toBe(true)
})

test('a flood of announcements fills no more than the table of keys, and what the node counts stays counted', async () => {
  const namespace = freshNamespace()
  const [node] = await start(namespace, 1, { maxKeys: 50 })
  for (let i = 0; i < LIMIT; i++) node?.check('first')
  expect(node?.check('first').allowed).toBe(false)
  await expect.poll(() => policyOf(namespace)).not.toBe('')
  const policy = (await policyOf(namespace)).replaceAll('%3a', ':')
  for (let i = 0; i < 20; i++) {
    const news = Array.from({ length: 400 }, (_, j) => `key ${i} ${j}\n60000`.replaceAll(' ', '%20'))
    await here.admin.publish(`${namespace}:1:0`, `b\nx\n${policy}\n${news.join('\n')}`)
  }
  await expect.poll(() => snapshot(node as NonNullable<typeof node>).policies[0]?.keys).toBe(50)
  expect(node?.check('first').allowed).toBe(false)
  await expect.poll(() => node?.state).toBe('synced')
})

test('nodes that are made up make exchanges more frequent, not limits smaller', async () => {
  const namespace = freshNamespace()
  const [node] = await start(namespace, 1)
  const [registry = ''] = await here.admin.keys(`${namespace}:*:nodes`)
  await here.admin.zadd(registry, ...Array.from({ length: 500 }, (_, i) => [Date.now() + 60_000, `ghost-${i}`]).flat())
  await expect.poll(() => snapshot(node as NonNullable<typeof node>).nodes, { timeout: 10_000 }).toBe(501)
  let allowed = 0
  for (let i = 0; i < 2 * LIMIT; i++) if (node?.check('key').allowed) allowed++
  expect(allowed).toBe(LIMIT)
})
