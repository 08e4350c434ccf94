import { type Algorithm, fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, systemClock, tokenBucket } from '@weir/core'
import { type DecidedPolicy, type Decider, MOST_OPEN, type OpenReservation, type Question, type StoreConnection } from '@weir/core/sync'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

/** Open reservations by the server's own clock. `central-scripts.test.ts` compares them with their model. */

const ALGORITHMS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  tokenBucket({ warmUp: '1h' }),
  leakyBucket({ burst: 1000, immediate: 1000 }),
]
const HOUR = 3_600_000

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

/** Asks a server about a key of one policy. */
class Key {
  readonly namespace: string = freshNamespace()
  readonly #policy: DecidedPolicy
  readonly #connection: StoreConnection
  #decider: Promise<Decider> | undefined
  #sequence = 0

  constructor(algorithm: Algorithm, interval: number) {
    const { step } = algorithm as Required<Algorithm>
    const policy = { name: 'p', id: 'p', limit: 1000, interval } as Parameters<typeof step.parameters>[0]
    this.#policy = { id: 'p', step, parameters: step.parameters(policy) }
    const store = redisStore(server.url, { ...PATIENT, namespace: this.namespace })
    this.#connection = store.open({ id: 'node', clock: systemClock, announced: () => {} })
  }

  async ask(kind: Question['kind'], units: number, reservation?: OpenReservation, at: number = Date.now()): Promise<number | undefined> {
    if (this.#decider === undefined) {
      await this.#connection.sync({ entries: [], blocks: [] })
      this.#decider = (this.#connection.decider as () => Promise<Decider>)()
    }
    const question: Question = { policy: this.#policy, key: 'k', kind, units, limit: 1000, at, ...(reservation && { reservation }) }
    const request = { sequence: ++this.#sequence, time: Date.now(), questions: [question] }
    const verdicts = await (await this.#decider).decide(request)
    return verdicts?.[0]?.remaining
  }

  close(): Promise<void> {
    return this.#connection.close() as Promise<void>
  }
}

describe.concurrent('a reservation settles itself at its end', () => {
  test.each(ALGORITHMS.map((algorithm) => [algorithm.id, algorithm] as const))('%s', async (_, algorithm) => {
    const key = new Key(algorithm, 1000 * HOUR)
    try {
      const left = (await key.ask('take', 0)) as number
      const taken = (await key.ask('take', 400, { id: 2 ** 52 - 1, end: Date.now() + 1_500, units: 400, due: 100 })) as number
      expect(taken).toBeLessThan(left - 390)
      await until(async () => ((await key.ask('take', 0)) as number) > taken + 10, 'the units are back')
      const names = await client.keys(`${key.namespace}:*:d:*`)
      expect(await client.hkeys(names.find((name) => !name.endsWith(':z')) as string)).not.toContain('#')
    } finally {
      await key.close()
    }
  })
})

describe('a key lives until its last reservation has ended', () => {
  test.each(ALGORITHMS.filter(({ step }) => step?.id.startsWith('bucket')).map((algorithm) => [algorithm.id, algorithm] as const))(
    '%s',
    async (_, algorithm) => {
      const key = new Key(algorithm, 1_000)
      try {
        await key.ask('take', 1, { id: 1, end: Date.now() + HOUR, units: 1, due: 1 })
        for (const units of [1, 500]) {
          await key.ask('take', units)
          for (const name of await client.keys(`${key.namespace}:*:d:*`)) expect(await client.pttl(name)).toBeGreaterThan(0.9 * HOUR)
        }
      } finally {
        await key.close()
      }
    },
  )
})

test('a key keeps a limited number of reservations, and forgets no request because of them', async () => {
  const key = new Key(fixedWindow(), 1000 * HOUR)
  try {
    const end = Date.now() + HOUR
    for (let id = 1; id <= MOST_OPEN + 5; id++) await key.ask('add', 0, { id, end, units: 1, due: 1 })
    const [name] = await client.keys(`${key.namespace}:*:d:*`)
    const fields = await client.hkeys(name as string)
    expect(fields.filter((field) => /^#\d/.test(field))).toHaveLength(MOST_OPEN)
    expect(fields).toContain('@node')
    await key.ask('settle', 3, { id: 1, end, units: 1, due: 1 })
    expect(await key.ask('take', 0)).toBe(998)
  } finally {
    await key.close()
  }
})
