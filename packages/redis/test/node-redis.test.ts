import { storeContract } from '@weir/testing'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { createClient } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { describe, expect, test } from 'vitest'
import { redisStore } from '../src/node-redis/index.ts'
import { flushed, hanging, killed } from './faults.ts'
import { BRIEF, PATIENT, redisFixture } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

const VERSIONS = [
  ['redis 6', createClient],
  ['redis 5', createClient5 as unknown as typeof createClient],
] as const

storeContract(
  'redisStore by a client of redis 6, restarted empty and killed',
  () =>
    redisFixture((namespace) => redisStore(createClient({ url: here.server.url }), { ...PATIENT, namespace }), [here.server], {
      lose: () => here.server.restart(),
      goAway: killed(here),
    }),
  { describe, test },
)

storeContract(
  'redisStore by a client of redis 5 with RESP2, flushed and hanging',
  () => {
    const client = createClient5({ socket: { port: here.server.port }, RESP: 2 })
    return redisFixture((namespace) => redisStore(client, { ...BRIEF, namespace }), [here.server], {
      lose: flushed(() => [here.server]),
      goAway: hanging(() => [here.server]),
    })
  },
  { describe, test },
)

storeContract(
  'redisStore by a client of redis 6 in several shards without announcements',
  () =>
    redisFixture(
      (namespace) => redisStore(createClient({ url: here.server.url, database: 3 }), { ...PATIENT, namespace, shards: 4, publish: false }),
      [here.server],
      {
        leftovers: () => [],
      },
    ),
  {
    describe,
    test,
    without: { announcements: 'they are switched off', lose: 'shown for other instances', goAway: 'shown for other instances' },
  },
)

test.each(VERSIONS)('the client of %s that is given is a template: neither used, changed nor closed', async (name, create) => {
  const namespace = `template-${name.at(-1)}`
  const client = create({ url: here.server.url, database: 2, commandOptions: { timeout: 1 } })
  const options = { ...client.options, socket: { ...client.options?.socket } }
  const node = new TestNode(redisStore(client, { ...PATIENT, namespace }))
  expect(await node.count('k', 1)).toBe(1)
  await node.close()
  expect(client.isOpen).toBe(false)
  expect(client.options).toEqual(options)
  expect(await here.server.keys(`${namespace}:*`, 2)).not.toEqual([])
})

test.each([undefined, null, 'redis://localhost', 5, {}, { rootNodes: [] }, { sentinelRootNodes: [{ host: 'a', port: 1 }] }])(
  '%j is no client',
  (given) => {
    expect(() => redisStore(given as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  },
)
