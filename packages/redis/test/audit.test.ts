import { type AuditLog, MOST_AUDITED } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { Keys } from '../src/keys/keys.ts'
import { freshNamespace } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

async function opened(): Promise<{ readonly log: AuditLog; readonly key: string }> {
  const namespace = freshNamespace()
  const node = new TestNode(redisStore(here.server.url, { namespace, timeout: 5_000 }))
  onTestFinished(() => node.close())
  const log = await node.connection.audit?.()
  if (log === undefined) throw new Error('no log')
  return { log, key: `${new Keys(namespace, 1).shards[0]?.prefix}audit` }
}

test('the log is deleted 90 days after its last entry', async () => {
  const { log, key } = await opened()
  await log.add('one')
  const left = Number(await here.admin.pttl(key))
  expect(left).toBeGreaterThan(89 * 86_400_000)
  expect(left).toBeLessThanOrEqual(90 * 86_400_000)
})

test('an entry stays for 90 days, even if newer ones follow', async () => {
  const { log, key } = await opened()
  const day = 86_400_000
  for (const days of [89, 91]) await here.admin.zadd(key, (Date.now() - days * day) * 1_000, `${days} days`)
  expect(await log.list(10)).toEqual(['89 days'])
  await here.admin.zadd(key, (Date.now() - 91 * day) * 1_000, '91 days')
  await log.add('new')
  expect(await here.admin.zrange(key, '0', '-1')).toEqual(['89 days', 'new'])
})

test('a log of another type starts again', async () => {
  const { log, key } = await opened()
  await here.admin.set(key, 'x')
  expect(await log.list(10)).toEqual([])
  await here.admin.set(key, 'x')
  await log.add('one')
  expect(await log.list(10)).toEqual(['one'])
})

test('entries that are too long are left out, and too many shrink with each new one', async () => {
  const { log, key } = await opened()
  const begin = (Date.now() - 60_000) * 1_000
  const members = Array.from({ length: 3_000 }, (_, at) => [begin + at, `${at}`]).flat()
  await here.admin.zadd(key, ...members, begin + 3_000, 'x'.repeat(100_000))
  for (let i = 0; i < 25; i++) await log.add(`new ${i}`)
  expect(Number(await here.admin.zcard(key))).toBe(MOST_AUDITED)
  const entries = await log.list(MOST_AUDITED)
  expect(entries).toHaveLength(MOST_AUDITED - 1)
  expect(entries.slice(0, 2)).toEqual(['new 24', 'new 23'])
})
