import {
  type Algorithm,
  createThrottler,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  systemClock,
  tokenBucket,
} from '@weir/core'
import type { Decide, DecidedPolicy, Decider } from '@weir/core/sync'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

/** Tests with invalid values in a key, and with times of a clock that was ahead. */

const ALGORITHMS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  tokenBucket({ warmUp: '10s' }),
  leakyBucket({ burst: 5, immediate: 5 }),
]

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await RedisServer.start()
  client = new Redis(server.url)
}, 60_000)
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

describe('a key that holds nonsense is decided about without the server, and disturbs no other one', () => {
  // Another type in place of a hash, fields that are not numbers, and numbers that are too large.
  const nonsense: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    text: (key) => client.set(key, 'x'),
    fields: (key) => client.hset(key, { u: 'x', s: 'x', o: 'x', b1: 'x' }),
    huge: (key) => client.hset(key, { u: '1e400', s: '\xff'.repeat(32), o: '1e400' }),
  }
  test.each(ALGORITHMS.map((algorithm) => [algorithm.id, algorithm] as const))('%s', async (_, algorithm) => {
    const namespace = freshNamespace()
    const policy = { limit: 5, interval: '1h', algorithm, coordination: 'central', failMode: 'closed', storeTimeout: '10s' } as const
    const throttler = createThrottler({ policies: [policy], store: redisStore(server.url, { ...PATIENT, namespace }) })
    try {
      throttler.start()
      await until(() => throttler.state === 'synced', 'the store answers')
      for (const [what, write] of Object.entries(nonsense)) {
        expect((await throttler.checkAsync(what)).allowed).toBe(true)
        const keys = (await client.keys(`${namespace}:*:d:*`)).filter((key) => key.includes(what))
        expect(keys.length).toBeGreaterThan(0)
        for (const key of keys) {
          await client.del(key)
          await write(key)
        }
        // The decision has a finite number, or follows the policy's choice for a store that is down. It is never an error.
        const decision = await throttler.checkAsync(what)
        expect(decision.remaining).toBeGreaterThanOrEqual(0)
        expect(decision.remaining).toBeLessThanOrEqual(6)
        expect((await throttler.checkAsync(`next to ${what.length}`)).allowed).toBe(true)
        expect(throttler.state).toBe('synced')
        throttler.reset(what)
        expect((await throttler.checkAsync(what)).allowed).toBe(true)
      }
    } finally {
      await throttler.close()
    }
  })
})

describe('a clock that was ahead keeps nobody out once it is right again', () => {
  test.each([slidingLog(), tokenBucket(), tokenBucket({ warmUp: '1s' })].map((algorithm) => [algorithm.id, algorithm] as const))(
    '%s',
    async (_, algorithm) => {
      const namespace = freshNamespace()
      const store = redisStore(server.url, { ...PATIENT, namespace })
      const connection = store.open({ id: 'node', clock: systemClock, announced: () => {} })
      try {
        await connection.sync({ entries: [], blocks: [] })
        const decider = await (connection.decider as () => Promise<Decider>)()
        const step = (algorithm as Required<Algorithm>).step
        const made = { name: 'p', id: 'p', limit: 2, interval: 200 } as Parameters<typeof step.parameters>[0]
        const policy: DecidedPolicy = { id: 'p', step, parameters: step.parameters(made) }
        let sequence = 0
        const take = async (ahead: number) => {
          const time = Date.now() + ahead
          const request: Decide = {
            sequence: ++sequence,
            time,
            questions: [{ policy, key: 'k', kind: 'take', units: 1, limit: 2, at: time }],
            ...(ahead > 0 && { stepped: true as const }),
          }
          return (await decider.decide(request))?.[0]?.allowed
        }
        expect(await take(3_600_000)).toBe(true)
        while ((await take(3_600_000)) === true);
        // The server's own clock is an hour behind now. The bucket is still full, and opens when its time has passed.
        expect(await take(0)).toBe(false)
        await until(async () => (await take(0)) === true, 'it is open', 5_000)
      } finally {
        await connection.close()
      }
    },
  )
})

test('what is told in the turn in which a throttler is closed arrives', async () => {
  const namespace = freshNamespace()
  const policy = { limit: 10, interval: '1h', coordination: 'central', storeTimeout: '10s' } as const
  const [a, b] = [1, 2].map(() => createThrottler({ policies: [policy], store: redisStore(server.url, { ...PATIENT, namespace }) }).start())
  if (a === undefined || b === undefined) throw new Error('no throttlers')
  await until(() => a.state === 'synced' && b.state === 'synced', 'the store answers')
  const keys = Array.from({ length: 20 }, (_, i) => `user ${i}`)
  const decisions = await Promise.all(keys.map((key) => a.checkAsync(key, 3)))
  for (const decision of decisions) {
    a.charge(decision, 2)
    a.refund(decision, 1)
  }
  await a.close()
  const left = await Promise.all(keys.map(async (key) => (await b.checkAsync(key)).remaining))
  await b.close()
  expect(left).toEqual(keys.map(() => 10 - 3 - 2 + 1 - 1))
})
