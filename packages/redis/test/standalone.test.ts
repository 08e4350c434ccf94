import { storeContract } from '@weir/testing'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey } from 'iovalkey'
import { describe, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { flushed, hanging, killed } from './faults.ts'
import { BRIEF, PATIENT, redisFixture } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

storeContract(
  'redisStore by URL, restarted empty and killed',
  () =>
    redisFixture((namespace) => redisStore(here.server.url, { ...PATIENT, namespace }), [here.server], {
      lose: () => here.server.restart(),
      goAway: killed(here),
    }),
  { describe, test },
)

storeContract(
  'redisStore by an instance of ioredis 6 with RESP2, flushed and hanging',
  () => {
    const client = new Redis({ port: here.server.port, protocol: 2, lazyConnect: true })
    return redisFixture((namespace) => redisStore(client, { ...BRIEF, namespace }), [here.server], {
      lose: flushed(() => [here.server]),
      goAway: hanging(() => [here.server]),
      close: () => client.disconnect(),
    })
  },
  { describe, test },
)

storeContract(
  'redisStore by an instance of ioredis 5 in several shards',
  () => {
    const client = new Redis5({ port: here.server.port, db: 3, lazyConnect: true })
    return redisFixture((namespace) => redisStore(client, { ...PATIENT, namespace, shards: 4 }), [here.server], {
      lose: flushed(() => [here.server]),
      leftovers: () => [],
      close: () => client.disconnect(),
    })
  },
  { describe, test, without: { goAway: 'shown for other instances' } },
)

storeContract(
  'redisStore by an instance of iovalkey, restarted empty and hanging',
  () => {
    const client = new Valkey({ port: here.server.port, lazyConnect: true })
    return redisFixture((namespace) => redisStore(client, { ...BRIEF, namespace }), [here.server], {
      lose: () => here.server.restart(),
      goAway: hanging(() => [here.server]),
      close: () => client.disconnect(),
    })
  },
  { describe, test },
)

storeContract(
  'redisStore by options without announcements',
  () => redisFixture((namespace) => redisStore({ port: here.server.port }, { ...PATIENT, namespace, publish: false }), [here.server]),
  {
    describe,
    test,
    without: { announcements: 'they are switched off', lose: 'shown for other instances', goAway: 'shown for other instances' },
  },
)
