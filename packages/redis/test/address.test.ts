import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'

test('stores at the same server, database and namespace are known to be one', () => {
  const address = (...args: Parameters<typeof redisStore>) => redisStore(...args).address
  const here = address('redis://:secret@localhost:6379')
  expect(here).not.toContain('secret')
  expect(address({ host: 'localhost' })).toBe(here)
  expect(address(new Redis({ lazyConnect: true }))).toBe(here)
  const others = [
    address('redis://localhost:6380'),
    address('redis://localhost:6379/1'),
    address('redis://localhost:6379', { namespace: 'mine' }),
    address('/tmp/redis.sock'),
    address({ sentinels: [{ host: 'a', port: 1 }], name: 'one' }),
    address({ sentinels: [{ host: 'a', port: 1 }], name: 'two' }),
    address({ cluster: [{ host: 'a', port: 1 }] }),
  ]
  expect(new Set([here, ...others]).size).toBe(1 + others.length)
  const cluster = new Cluster([{ host: 'b', port: 2 }, 'redis://:secret@a:1'], { lazyConnect: true })
  expect(address(cluster)).toBe(
    address({
      cluster: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
    }),
  )
})
