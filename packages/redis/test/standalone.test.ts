import { storeContract } from '@weir/testing'
import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { redisFixture } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

storeContract(
  'redisStore by URL, restarted empty and killed',
  () =>
    redisFixture((namespace) => redisStore(server.url, { namespace }), [server], {
      lose: () => server.restart(),
      goAway: async () => {
        await server.kill()
        return () => server.start()
      },
    }),
  { describe, test },
)

storeContract(
  'redisStore by an instance of ioredis 6 with RESP2, flushed and hanging',
  () => {
    const client = new Redis({ port: server.port, protocol: 2, lazyConnect: true })
    return redisFixture((namespace) => redisStore(client, { namespace, timeout: 500 }), [server], {
      lose: async () => void (await server.cli('flushall')),
      goAway: async () => {
        server.pause()
        return () => server.resume()
      },
      close: () => client.disconnect(),
    })
  },
  { describe, test },
)

storeContract(
  'redisStore by an instance of ioredis 5 in several buckets',
  () => {
    const client = new Redis5({ port: server.port, db: 3, lazyConnect: true })
    return redisFixture((namespace) => redisStore(client, { namespace, buckets: 4 }), [server], {
      lose: async () => void (await server.cli('flushall')),
      leftovers: () => [],
      close: () => client.disconnect(),
    })
  },
  { describe, test, without: { goAway: 'shown for other instances' } },
)

storeContract(
  'redisStore by options without announcements',
  () => redisFixture((namespace) => redisStore({ port: server.port }, { namespace, publish: false }), [server]),
  {
    describe,
    test,
    without: { announcements: 'they are switched off', lose: 'shown for other instances', goAway: 'shown for other instances' },
  },
)
