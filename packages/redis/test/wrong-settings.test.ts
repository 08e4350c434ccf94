import type { Store } from '@weir/core'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { RedisServer } from '@weir/tooling/redis-servers'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asWeirError, isSetting } from '../src/connection/unavailable.ts'
import { redisStore } from '../src/index.ts'
import { redisStore as nodeRedisStore } from '../src/node-redis/index.ts'
import { PATIENT } from './fixtures.ts'

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start({ arguments: ['--requirepass', 'right'], admin: { password: 'right' } })
  await server.command('ACL', 'SETUSER', 'poor', 'on', '>secret', '~other:*', '&*', '+@all')
  await server.command('ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', '&*', '+@all', '-set', '-setrange')
})
afterAll(() => server.stop())

const at = (user: string) => `redis://${user}127.0.0.1:${server.port}`
const sentinels = () => [{ host: '127.0.0.1', port: server.port }]
const cluster = (password: string) => ({ cluster: [{ host: '127.0.0.1', port: server.port }], options: { redisOptions: { password } } })

/** The mistake, the store, the text of Redis or the library, and the next step. */
const MISTAKES: readonly (readonly [string, () => Store, string, string])[] = [
  ['no password', () => redisStore(at(''), PATIENT), 'NOAUTH', 'redis://user:password@host:6379'],
  ['a wrong password', () => redisStore(at(':wr0ng@'), PATIENT), 'WRONGPASS', 'Check the user name and the password'],
  [
    'a user that may not use the keys',
    () => redisStore(at('poor:secret@'), PATIENT),
    'NOPERM',
    '"Permissions" in the README of @weir/redis',
  ],
  [
    'a user that may not use a command of a script',
    () => redisStore(at('mute:secret@'), PATIENT),
    "can't run",
    '"Permissions" in the README',
  ],
  ['a database that is none', () => redisStore(`${at(':right@')}/99`, PATIENT), 'DB index is out of range', 'Choose one from 0 to 15'],
  [
    'a database that is none, by node-redis',
    () => nodeRedisStore(createClient({ url: `${at(':right@')}/99` }), PATIENT),
    'DB index is out of range',
    'Choose one from 0 to 15',
  ],
  ['a Sentinel that needs a password', () => redisStore({ sentinels: sentinels(), name: 'main' }, PATIENT), 'NOAUTH', '"sentinelPassword"'],
  [
    'a Sentinel that is none',
    () => redisStore({ sentinels: sentinels(), name: 'main', sentinelPassword: 'right' }, PATIENT),
    'unknown command',
    'This server is no Sentinel',
  ],
  ['a host that is none', () => redisStore('redis://no.such.invalid', PATIENT), 'ENOTFOUND', 'Check the URL'],
  ['a Cluster that is none', () => redisStore(cluster('right'), PATIENT), 'cluster support disabled', 'Pass its URL to redisStore'],
  ['a Cluster without its password', () => redisStore(cluster(''), PATIENT), 'NOAUTH', 'needs a password'],
  ['no password, by node-redis', () => nodeRedisStore(createClient({ url: at('') }), PATIENT), 'NOAUTH', 'redis://user:password@host:6379'],
  [
    'a wrong password, by node-redis',
    () => nodeRedisStore(createClient({ url: at(':wr0ng@') }), PATIENT),
    'WRONGPASS',
    'Check the user name and the password',
  ],
  [
    'a user that may not, by node-redis',
    () => nodeRedisStore(createClient({ url: at('poor:secret@') }), PATIENT),
    'NOPERM',
    '"Permissions" in the README',
  ],
]

test.each(MISTAKES)('%s is a warning that names the server, the reason and the next step', async (_, makeStore, reason, step) => {
  const node = new TestNode(makeStore())
  const failure = await node.failure(() => node.count('k', 1))
  expect(failure?.code).toBe('WEIR_STORE_UNAVAILABLE')
  for (const part of [/^Redis at (cluster |main )?(127\.0\.0\.1:\d+|no\.such\.invalid:6379)/, reason, step])
    expect(failure?.message).toMatch(typeof part === 'string' ? new RegExp(part.replace(/[()?.*+]/g, '\\$&')) : part)
  expect(failure?.message).not.toMatch(/wr0ng|secret/)
  expect(node.warnings).toContainEqual(failure)
  await node.close()
})

test.each(['self-signed certificate', 'unable to get local issuer certificate', "Hostname/IP does not match certificate's altnames"])(
  '%s: another setting helps',
  (reason) => {
    const error = asWeirError(new Error(reason), 'redis:6379/0')
    expect(isSetting(error)).toBe(true)
    expect(error.message).toContain('{ tls: { ca } }')
  },
)

test('a server that is down is no mistake: the events report it', async () => {
  const node = new TestNode(redisStore('redis://127.0.0.1:1', PATIENT))
  const failure = await node.failure(() => node.count('k', 1))
  expect(failure?.message).toBe(
    'Redis at 127.0.0.1:1/0 is unreachable (connect ECONNREFUSED 127.0.0.1:1). Weir tries again. Check the server, its address and the network. See @weir/core/docs/errors/weir_store_unavailable.md',
  )
  expect(node.warnings).toEqual([])
  await node.close()
})
