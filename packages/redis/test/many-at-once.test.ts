import { createThrottler } from '@weir/core'
import { faultProxy } from '@weir/testing'
import { expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

test.each([
  [100, 60],
  [1_000, 60],
  [10_000, 4_321],
])('%i checks at once of a key that allows %i are decided by Redis, 20 ms away, exactly and with few commands', async (count, limit) => {
  const proxy = await faultProxy({ port: here.server.port })
  onTestFinished(() => proxy.close())
  proxy.set({ latency: 20 })
  const throttler = createThrottler({
    store: redisStore({ port: proxy.port }, { ...PATIENT, namespace: freshNamespace() }),
    policies: [{ name: 'p', limit, interval: '1w', coordination: 'central', failMode: 'closed', storeTimeout: '30s' }],
  })
  onTestFinished(() => throttler.close())
  throttler.start()
  await expect.poll(async () => (await throttler.checkAsync('ready')).allowed, { timeout: 30_000 }).toBe(true)
  const commands = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await here.admin.info('commandstats'))?.[1] ?? 0)
  const before = await commands()
  const decisions = await Promise.all(Array.from({ length: count }, () => throttler.checkAsync('k')))
  expect(decisions.filter(({ allowed }) => allowed).length).toBe(limit)
  expect(decisions.filter(({ allowed, reason }) => !allowed && reason !== 'limit')).toEqual([])
  expect((await commands()) - before).toBeLessThan(150)
  expect((await throttler.usage('k'))[0]?.used).toBe(limit)
})
