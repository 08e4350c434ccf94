import { createThrottler } from '@weir/core'
import { cluster, snapshot } from '@weir/core/inspect'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

function node(namespace: string) {
  const throttler = createThrottler({
    store: redisStore(server.url, { ...PATIENT, namespace, shards: 4 }),
    policies: [{ name: 'user', limit: 100, interval: '1h' }],
    heartbeat: 100,
  })
  onTestFinished(() => throttler.close())
  return throttler.start()
}

test('nodes tell of themselves while one of them watches, and what they told is gone afterwards', async () => {
  const namespace = freshNamespace()
  const [one, two] = [node(namespace), node(namespace)]
  for (let i = 0; i < 30; i++) two.check('"a\u0000\ud800\n')
  await expect.poll(() => one.state).toBe('synced')
  const others = () => cluster(one).filter(({ self }) => !self)
  await expect
    .poll(others, { timeout: 5_000 })
    .toMatchObject([
      { node: two.nodeId, state: 'synced', policies: [{ name: 'user', allowed: 30 }], top: [{ key: '"a\u0000\ud800\n', used: 30 }] },
    ])
  const names = await server.keys(`${namespace}:*:status`)
  expect(names).toHaveLength(1)
  const status = names[0] as string
  expect(Number(await server.command('pttl', status))).toBeGreaterThan(0)
  expect(Number(await server.command('pttl', status))).toBeLessThanOrEqual(10_000)
  await two.close()
  await expect.poll(others, { timeout: 5_000 }).toEqual([])
})

test('nothing is told while nobody watches', async () => {
  const namespace = freshNamespace()
  const [one] = [node(namespace), node(namespace)]
  await expect.poll(() => snapshot(one).sync.exchanges).toBeGreaterThan(5)
  expect(await server.keys(`${namespace}:*:status`)).toEqual([])
})

test('nodes of two processes that have different rules under one name are told, and what they told expires', async () => {
  const namespace = freshNamespace()
  // Another name of the server hides that both throttlers use one store, as in another process, so no error can report it.
  const urls = [server.url, server.url.replace('127.0.0.1', 'localhost')]
  const warnings = urls.map((url, at) => {
    const throttler = createThrottler({
      store: redisStore(url, { ...PATIENT, namespace, shards: 4 }),
      policies: [
        { name: 'user', limit: 100, interval: at === 0 ? '1h' : '2h' },
        { name: 'other', limit: 100 + at, interval: '1h' },
      ],
      heartbeat: 100,
    })
    onTestFinished(() => throttler.close())
    const heard: string[] = []
    throttler.on('warning', ({ error }) => heard.push(`${error.code} ${error.message}`))
    throttler.on('peerRuleDiffers', ({ policy, changes }) => heard.push(`${policy} ${changes}`))
    throttler.start()
    return heard
  })
  await expect
    .poll(() => warnings.flat().sort(), { timeout: 20_000 })
    .toMatchObject([
      expect.stringMatching(
        /^WEIR_WARN_RULES_DIFFER Process \S+ uses different settings for policy "user": "interval" is \d+ here and \d+ there/,
      ),
      expect.stringMatching(/^other "limit" is 10[01] here and 10[01] there/),
    ])
  const names = await server.keys(`${namespace}:*:rules`)
  expect(names).toHaveLength(1)
  const rules = names[0] as string
  expect(Number(await server.command('pttl', rules))).toBeGreaterThan(0)
  expect(Number(await server.command('pttl', rules))).toBeLessThanOrEqual(60_000)
})
