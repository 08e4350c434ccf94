import { createThrottler } from '@weir/core'
import { createClient } from 'redis'
import { expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { redisStore as nodeRedisStore } from '../src/node-redis/index.ts'
import { ownServer } from './own-server.ts'

/** Milliseconds. The process is busy for longer than the timeout of a reply, and for less than that of a connection, five times as long. */
const TIMEOUT = 150
const BUSY = 200

const own = ownServer()

function block(): void {
  const end = performance.now() + BUSY
  while (performance.now() < end);
}

const clients = {
  ioredis: (url: string) => redisStore(url, { timeout: TIMEOUT }),
  'node-redis': (url: string) => nodeRedisStore(createClient({ url }), { timeout: TIMEOUT }),
}

test.each(Object.entries(clients))('a process that is too busy to read a reply reports no outage: %s', async (_, store) => {
  const throttler = createThrottler({ policies: [{ limit: 10, interval: '1s' }], store: store(own.server.url), heartbeat: '100ms' })
  onTestFinished(() => throttler.close())
  const events: string[] = []
  throttler.on('storeDown', ({ cause }) => events.push(String(cause)))
  throttler.on('warning', ({ error }) => events.push(error.message))
  throttler.start()
  block()
  for (let i = 0; i < 10; i++) {
    throttler.check('a')
    // Replies, timers and this loop alternate, each after a pause that is longer than the timeout.
    await new Promise((resolve) => setTimeout(resolve, 1))
    block()
  }
  await expect.poll(() => throttler.state).toBe('synced')
  expect(events).toEqual([])
})
