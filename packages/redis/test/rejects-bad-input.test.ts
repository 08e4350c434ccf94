import { createThrottler } from '@weir/core'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, test } from 'vitest'
import { parseAnnouncements, parseMember, parseResult, parseTime } from '../src/exchange/wire.ts'
import { type RedisTarget, redisStore } from '../src/index.ts'
import { redisStore as nodeRedisStore } from '../src/node-redis/index.ts'

test.each([
  ['no target', undefined],
  ['null', null],
  ['a number', 6379],
  ['a text that is no URL', 'localhost'],
  ['a list', []],
  ['an empty Cluster', { cluster: [] }],
  ['an instance of something else', new Map()],
])('%s is rejected', (_, target) => {
  expect(() => redisStore(target as unknown as RedisTarget)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
})

test.each([
  { namespace: '' },
  { namespace: 'a{b}' },
  { namespace: 'a b' },
  { timeout: 0 },
  { timeout: Number.NaN },
  { timeout: 61_000 },
  { shards: 0 },
  { shards: 1.5 },
  { publish: 'yes' as unknown as boolean },
])('the option %o is rejected', (options) => {
  expect(() => redisStore('redis://127.0.0.1:1', options)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
})

test('an unknown option is rejected', () => {
  const options = { prefix: 'x' } as object
  const message = expect.stringContaining('Unknown option "prefix". Did you mean "namespace"?')
  expect(() => redisStore('redis://127.0.0.1:1', options)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION', message }))
})

test.each([
  { url: 'redis://redis:6379' },
  { socket: { host: 'redis' } },
  { client: new Redis({ lazyConnect: true }) },
  { sendCommand: () => {} },
  { storeClient: {} },
  { host: 'redis', namespace: 'x' },
  { cluster: [{ port: 1 }], redisOptions: {} },
])('settings with a name that ioredis would ignore are rejected, not connected to localhost: %o', (target) => {
  const message = expect.stringContaining(`ption "${Object.keys(target).at(-1)}"`)
  expect(() => redisStore(target as unknown as RedisTarget)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION', message }))
})

test('an option of the store among the options of createCluster() is rejected', () => {
  const target = { rootNodes: [{ url: 'redis://127.0.0.1:1' }], namespace: 'x' }
  expect(() => nodeRedisStore(target)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION' }))
})

test('a password never appears in a message', () => {
  const target = { host: 'h', password: 'secret', cluster: 'secret' } as unknown as RedisTarget
  expect(() => redisStore(target)).toThrow(expect.not.stringContaining('secret'))
})

test('a server that answers nonsense is told apart', () => {
  fc.assert(
    fc.property(fc.anything(), (nonsense) => {
      for (const parse of [parseMember, (value: unknown) => parseResult(value, []), (value: unknown) => parseTime(value, value)]) {
        try {
          parse(nonsense)
        } catch (error) {
          expect(error).toMatchObject({ code: 'WEIR_STORE_REPLY' })
        }
      }
    }),
  )
  fc.assert(
    fc.property(fc.string(), (nonsense) => {
      expect(() => parseAnnouncements(nonsense)).toThrow(expect.objectContaining({ code: 'WEIR_STORE_REPLY' }))
    }),
  )
})

test('a client in the place of a store, or of the other library, is answered by the import that it needs', () => {
  const [ioredis, nodeRedis] = [new Redis({ lazyConnect: true }), createClient()]
  const policies = [{ limit: 1, interval: '1m' }] as const
  const thrower = (run: () => unknown, message: string) =>
    expect(run).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining(message) }))
  thrower(() => createThrottler({ policies, store: ioredis as never }), 'Use store: redisStore(client), imported from "@weir/redis".')
  thrower(() => createThrottler({ policies, store: nodeRedis as never }), 'imported from "@weir/redis/node-redis".')
  thrower(() => redisStore(nodeRedis as never), 'import redisStore from "@weir/redis/node-redis"')
  thrower(() => nodeRedisStore(ioredis as never), 'a client of ioredis, import redisStore from "@weir/redis"')
  ioredis.disconnect()
})

test.each([
  [() => redisStore(new Map() as never), /redisStore\(\): the first argument is an instance of "Map"\. Use a URL, an ioredis client/],
  [() => redisStore('localhost'), /redisStore\(\): the first argument is a string\. Use a URL like redis:\/\/host:6379/],
  [
    () => redisStore('redis://:secret@host', { timeout: '5ms' }),
    /Option "timeout" is "5ms"\. Use a number of milliseconds .* from 10 ms to 60000 ms\./,
  ],
  [() => redisStore('redis://:secret@host', { timeout: '60' as never }), /Option "timeout" is "60", which has no unit\. Use "60s"/],
  [() => redisStore('redis://:secret@host', { namespace: 'a b' }), /Option "namespace" is "a b"\. Use 1 to 100 letters/],
  [
    () => redisStore('redis://:secret@host', 'app' as never),
    /Option "redisStore" is "app"\. Use an object such as \{ namespace: "app" \} as second argument\./,
  ],
  [() => redisStore('redis://:secret@host', { keyPrefix: 'x' } as never), /Unknown option "keyPrefix"\. Did you mean "namespace"\?/],
  [
    () => redisStore('redis://:secret@host', { sendCommand: 'x' } as never),
    /Unknown option "sendCommand"\. Pass the client as first argument/,
  ],
  [() => redisStore({ host: 'h', password: 'secret', namespace: 'x' } as never), /Use redisStore\(client, \{ namespace: … \}\)\./],
  [
    () => nodeRedisStore('redis://:secret@host' as never),
    /redisStore\(\): the first argument is a string\. .* import redisStore from "@weir\/redis"/,
  ],
])('a message names what was given and the next step, and no password: %#', (make, message) => {
  expect(make).toThrow(message)
  expect(make).toThrow(/ See @weir\/core\/docs\/errors\/weir_\w+\.md$/)
  expect(make).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }))
})

test('the timeout may be a duration', () => {
  expect(() => redisStore('redis://127.0.0.1:1', { timeout: '1s' })).not.toThrow()
})
