import { memoryStore } from '@weir/core'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type BetterAuthStorage, betterAuthStorage } from '../src/better-auth.ts'
import { EXCEPTIONS } from './better-auth-exceptions.ts'
import { fakeTime } from './fake-time.ts'

type RateLimit = NonNullable<BetterAuthOptions['rateLimit']>

/** Sends requests to an instance of better-auth. */
interface Client {
  /** Sends `count` requests, and resolves with their statuses. */
  statuses(count: number, path: string): Promise<number[]>
  send(path: string, address?: string): Promise<Response>
}

let clients = 0

/** An instance in memory, whose limits are counted by better-auth itself without a storage. */
function client(storage: BetterAuthStorage | undefined, rateLimit: RateLimit = {}): Client {
  // The storage of better-auth itself is shared by all instances of a process.
  const own = `192.0.2.${++clients}`
  const auth = betterAuth({
    baseURL: 'http://localhost',
    secret: 'fUPqvw2JxQ9n7mB4sT8yK1cR6eL3hZ0d',
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    // Real hashes cost a tenth of a second each.
    emailAndPassword: { enabled: true, password: { hash: async (text) => text, verify: async ({ hash, password }) => hash === password } },
    rateLimit: { enabled: true, ...rateLimit, ...(storage !== undefined && { customStorage: storage }) },
    telemetry: { enabled: false },
    logger: { disabled: true },
  })
  let users = 0
  const send = (path: string, address = own): Promise<Response> => {
    const headers = { 'content-type': 'application/json', ...(address !== '' && { 'x-forwarded-for': address }) }
    const url = `http://localhost/api/auth${path}`
    if (!path.startsWith('/sign')) return auth.handler(new Request(url, { headers }))
    const body = JSON.stringify({ email: `user${++users}@example.com`, password: 'correct horse', name: 'A user' })
    return auth.handler(new Request(url, { method: 'POST', headers, body }))
  }
  const statuses = async (count: number, path: string) => {
    const found: number[] = []
    for (let request = 0; request < count; request++) found.push((await send(path)).status)
    return found
  }
  return { statuses, send }
}

interface Case {
  readonly title: string
  run(storage: BetterAuthStorage | undefined, pass: (ms: number) => Promise<void>): Promise<void>
}

const times = (count: number, status: number): number[] => Array(count).fill(status)

/** Its users don't exist, so that a sign-in which the limit allows has status 401. */
const SIGN_IN = '/sign-in/email'
const SIGN_UP = '/sign-up/email'
const TWENTY: RateLimit = { window: 10, max: 20 }

/** The cases of better-auth's tests that concern a storage, in their order. */
const PEER_CASES: readonly Case[] = [
  {
    title: 'three sign-ins are allowed by the special rule',
    run: async (storage) => {
      expect(await client(storage, TWENTY).statuses(5, SIGN_IN)).toEqual([401, 401, 401, 429, 429])
    },
  },
  {
    title: 'sign-ins are allowed again after the window',
    run: async (storage, pass) => {
      const { statuses } = client(storage, TWENTY)
      for (let window = 0; window < 2; window++) {
        expect(await statuses(5, SIGN_IN)).toEqual([401, 401, 401, 429, 429])
        await pass(11_000)
      }
    },
  },
  {
    title: 'X-Retry-After is the time to the end of the window',
    run: async (storage, pass) => {
      const { statuses, send } = client(storage, TWENTY)
      await statuses(4, SIGN_IN)
      await pass(3000)
      const response = await send(SIGN_IN)
      expect([response.status, response.headers.get('x-retry-after')]).toEqual([429, '7'])
      expect(await response.json()).toEqual({ message: 'Too many requests. Please try again later.' })
    },
  },
  {
    title: 'each path has counts of its own',
    run: async (storage) => {
      const { statuses } = client(storage, TWENTY)
      expect(await statuses(4, SIGN_IN)).toEqual([401, 401, 401, 429])
      expect(await statuses(1, SIGN_UP)).toEqual([200])
    },
  },
  {
    title: 'other paths have the limit of the options',
    run: async (storage) => {
      expect(await client(storage, TWENTY).statuses(25, '/get-session')).toEqual([...times(20, 200), ...times(5, 429)])
    },
  },
  {
    title: 'the query is no part of the key',
    run: async (storage) => {
      const { send } = client(storage, TWENTY)
      const found: number[] = []
      for (let request = 0; request < 25; request++) found.push((await send(`/list-sessions?query=${request}`)).status)
      expect(found).toEqual([...times(20, 401), ...times(5, 429)])
    },
  },
  {
    title: 'custom rules, also with an asterisk, and false for no limit',
    run: async (storage) => {
      const customRules: RateLimit['customRules'] = {
        '/sign-in/*': { window: 10, max: 2 },
        '/sign-up/email': { window: 10, max: 3 },
        '/get-session': false,
      }
      const { statuses } = client(storage, { ...TWENTY, customRules })
      expect(await statuses(4, SIGN_IN)).toEqual([401, 401, 429, 429])
      expect(await statuses(5, SIGN_UP)).toEqual([200, 200, 200, 429, 429])
      expect(await statuses(110, '/get-session')).toEqual(times(110, 200))
      expect(await statuses(21, '/list-sessions')).toEqual([...times(20, 401), 429])
    },
  },
]

/** Cases that better-auth's tests leave out. */
const OWN_CASES: readonly Case[] = [
  {
    title: 'each client has counts of its own',
    run: async (storage) => {
      const { statuses, send } = client(storage)
      expect(await statuses(4, SIGN_IN)).toEqual([401, 401, 401, 429])
      expect((await send(SIGN_IN, '198.51.100.7')).status).toBe(401)
    },
  },
  {
    title: 'a custom rule may be a function',
    run: async (storage) => {
      const customRules: RateLimit['customRules'] = { '/get-session': async (_request, rule) => ({ ...rule, max: rule.max / 10 }) }
      expect(await client(storage, { ...TWENTY, customRules }).statuses(3, '/get-session')).toEqual([200, 200, 429])
    },
  },
  {
    title: 'requests at the same time are counted one by one',
    run: async (storage) => {
      const { send } = client(storage)
      const responses = await Promise.all(Array.from({ length: 10 }, () => send(SIGN_IN)))
      expect(responses.filter(({ status }) => status === 401).length).toBe(3)
    },
  },
  {
    title: 'rejected requests don’t prolong the wait',
    run: async (storage, pass) => {
      const { statuses } = client(storage)
      await statuses(3, SIGN_IN)
      await pass(9000)
      expect(await statuses(2, SIGN_IN)).toEqual([429, 429])
      await pass(1000)
      expect(await statuses(1, SIGN_IN)).toEqual([401])
    },
  },
  {
    title: 'each allowed request prolongs the window',
    run: async (storage, pass) => {
      const { statuses } = client(storage)
      for (const status of [401, 401, 401, 429]) {
        expect(await statuses(1, SIGN_IN)).toEqual([status])
        await pass(6000)
      }
    },
  },
  {
    title: 'max 0 allows the first request of a window',
    run: async (storage) => {
      const customRules = { '/get-session': { window: 10, max: 0 } }
      expect(await client(storage, { customRules }).statuses(2, '/get-session')).toEqual([200, 429])
    },
  },
]

const CASES = [...PEER_CASES, ...OWN_CASES]

test('each exception is one of the cases', () => {
  expect(CASES.map(({ title }) => title)).toEqual(expect.arrayContaining(Object.keys(EXCEPTIONS)))
})

test.each(CASES)('better-auth itself: $title', async ({ run }) => {
  const pass = fakeTime()
  await run(undefined, async (ms) => pass(ms))
})

test.each(CASES)('betterAuthStorage: $title', async ({ title, run }) => {
  const pass = fakeTime()
  const storage = betterAuthStorage(memoryStore())
  onTestFinished(() => storage.throttler.close())
  const running = run(storage, async (ms) => {
    // An answer of the store ensures that earlier ones have arrived: time passes between an answer and its arrival otherwise.
    await storage.throttler.usage('any')
    pass(ms)
  })
  await (title in EXCEPTIONS ? expect(running).rejects.toThrow(/^expected/) : running)
})

describe('an instance with betterAuthStorage', () => {
  const HOURLY: RateLimit = { customRules: { [SIGN_IN]: { window: 3600, max: 3 } } }

  test('shares its limits with another process at Redis', async () => {
    const redis = await RedisServer.start()
    onTestFinished(() => redis.stop())
    const storages = [1, 2].map(() => betterAuthStorage(redisStore(redis.url)))
    for (const { throttler } of storages) onTestFinished(() => throttler.close())
    const processes = storages.map((storage) => client(storage, HOURLY))
    let allowed = 0
    let statuses: number[]
    do {
      statuses = await Promise.all(processes.map(async ({ send }) => (await send(SIGN_IN, '203.0.113.9')).status))
      allowed += statuses.filter((status) => status === 401).length
      // All counts are at Redis before the next requests, so that the speed of the machine does not matter.
      for (const { throttler } of storages) {
        await expect.poll(() => throttler.usage(`203.0.113.9|${SIGN_IN}`)).toMatchObject([{ used: allowed }])
      }
    } while (statuses.includes(401))
    expect(allowed).toBeGreaterThanOrEqual(3)
    // Each process may allow one more request before it receives the other's last count.
    expect(allowed).toBeLessThanOrEqual(5)
  })

  test('shows its keys by address and path', async () => {
    const storage = betterAuthStorage(memoryStore())
    onTestFinished(() => storage.throttler.close())
    const { send } = client(storage, HOURLY)
    for (let request = 0; request < 4; request++) await send(SIGN_IN, '203.0.113.9')
    const rows = await storage.throttler.usage(`203.0.113.9|${SIGN_IN}`)
    expect(rows).toMatchObject([{ policy: 'better-auth:3/3600s', used: 3 }])
  })

  test('fails with a clear error after its throttler was closed', async () => {
    const storage = betterAuthStorage(memoryStore())
    const { send } = client(storage, HOURLY)
    await storage.throttler.close()
    await expect(send(SIGN_IN)).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
  })
})
