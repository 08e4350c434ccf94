import { createThrottler, slidingWindow, tokenBucket } from '@weir/core'
import { expect, test, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

test.each([
  ['fixed window', {}],
  ['sliding window', { algorithm: slidingWindow() }],
  ['token bucket', { algorithm: tokenBucket() }],
] as const)('a decision sees the refund, charge and reset before it, although the server knows no script yet: %s', async (_name, rule) => {
  await here.server.command('script', 'flush')
  const throttler = createThrottler({
    policies: [{ limit: 4, interval: '1d', coordination: 'central', storeTimeout: '20s', ...rule }],
    store: redisStore(here.server.url, { ...PATIENT, namespace: freshNamespace() }),
  }).start()
  try {
    // The first request that the store decides loads the code for it.
    await vi.waitFor(() => expect(throttler.state).toBe('synced'), 10_000)
    const all = async (key: string) => [await throttler.checkAsync(key, 2), await throttler.checkAsync(key, 2)] as const
    const full = async (key: string) => expect((await throttler.checkAsync(key)).allowed).toBe(false)
    const [first] = await all('refunded')
    await full('refunded')
    throttler.refund(first)
    expect((await throttler.checkAsync('refunded', 2)).allowed).toBe(true)
    const charged = await throttler.checkAsync('charged')
    throttler.charge(charged, 3)
    await full('charged')
    await all('reset')
    throttler.reset('reset')
    expect((await throttler.checkAsync('reset', 4)).allowed).toBe(true)
    await all('blocked')
    throttler.block('blocked', '1h')
    expect((await throttler.checkAsync('blocked')).reason).toBe('blocked')
    throttler.unblock('blocked')
    expect((await throttler.checkAsync('blocked')).reason).toBe('limit')
    // A server that loses its scripts later gets all of them again, in the order of the calls.
    const [again] = await all('again')
    await here.server.command('script', 'flush')
    throttler.refund(again)
    expect((await throttler.checkAsync('again', 2)).allowed).toBe(true)
  } finally {
    await throttler.close()
  }
})
