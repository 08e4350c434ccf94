import { afterEach, describe, expect, test, vi } from 'vitest'
import { createGuard, nodeReader } from '../src/http/adapter.ts'
import {
  calendar,
  concurrency,
  createThrottler,
  escalating,
  fixedWindow,
  leakyBucket,
  learnedEstimate,
  limitedFetch,
  memoryStore,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type WeirError,
} from '../src/index.ts'
import { ipcStore, serveIpc } from '../src/ipc/index.ts'
import { follow, httpRules } from '../src/rules/index.ts'
import { thrownBy } from './support/nodes.ts'

const ONE = { key: 'ip', limit: 100, interval: '1m', coordination: 'local' } as const
const throttler = (options: object) => createThrottler({ policies: [ONE], ...options } as never)
const policy = (options: object) => createThrottler({ policies: [{ ...ONE, ...options }] } as never)
const guard = (options: object) => createGuard({ ...ONE, ...options } as never, nodeReader)

describe('a mistake that is made often is answered by the option, the value, and what to write instead', () => {
  test.each<[string, () => unknown, string, string, string]>([
    ['seconds as a text', () => policy({ interval: '60' }), '"interval"', '"60"', 'Use "60s", or the number 60 for milliseconds'],
    [
      'months',
      () => policy({ interval: '1 month' }),
      '"interval"',
      '"1 month"',
      'Use "30d", or calendar("month"). Import it: import { calendar } from',
    ],
    ['some months', () => policy({ interval: '3months' }), '"interval"', '"3months"', '"90d"'],
    ['months of a cooldown', () => policy({ cooldown: '1 month' }), '"cooldown"', '"1 month"', 'Use "30d"'],
    ['a unit alone', () => policy({ interval: 'minute' }), '"interval"', '"minute"', 'Use "1 minute"'],
    ['per a unit', () => guard({ interval: 'per hour' }), '"interval"', '"per hour"', 'Use "1 hour"'],
    [
      'a client of ioredis',
      () => throttler({ store: ioredisLike() }),
      '"store"',
      'a client of ioredis',
      'redisStore(client), imported from "@weir/redis"',
    ],
    ['a client of node-redis', () => guard({ store: nodeRedisLike() }), '"store"', 'a client of node-redis', '"@weir/redis/node-redis"'],
    [
      'a pool of pg',
      () => throttler({ store: poolLike() }),
      '"store"',
      'a client of pg',
      'postgresStore(pool), imported from "@weir/postgres"',
    ],
    ['a URL', () => throttler({ store: 'redis://:pa55@host' }), '"store"', 'a string', 'redisStore("redis://localhost:6379")'],
    [
      'a promise of options',
      () => createGuard(Promise.resolve(ONE) as never, nodeReader),
      '"throttle"',
      'object',
      'It is a promise: await it.',
    ],
    [
      'a list',
      () => createGuard([ONE] as never, nodeReader),
      '"throttle"',
      '[{"key":"ip"',
      'options such as { key: "ip", limit: 100, interval: "1m" }',
    ],
    [
      'no reader',
      () => createGuard(ONE as never, undefined as never),
      '"reader"',
      'undefined',
      'nodeReader, imported from "@weir/core/adapter"',
    ],
    ['a reader that lacks functions', () => createGuard(ONE as never, { ip: () => 'a' } as never), '"reader"', '"ip"', 'nodeReader'],
    ['a child in place of children', () => serveIpc({ children: {} } as never), '"children"', '{}', 'a list of child processes'],
    ['a store that is not made', () => throttler({ store: memoryStore }), '"store"', 'function memoryStore', 'store: memoryStore()'],
  ])('%s', (_, make, option, value, next) => {
    const error = thrownBy(make) as WeirError
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    for (const part of [option, value, next]) expect(error.message).toContain(part)
    expect(error.message).not.toContain('pa55')
  })

  test.each([
    ['of Node.js', { url: '/', headers: {} }],
    ['of Koa and Hono', { req: {}, res: {} }],
  ])('a request %s in place of options: throttle was not called', (_, request) => {
    const error = thrownBy(() => createGuard(request as never, nodeReader)) as WeirError
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain('Write app.use(throttle({ key: "ip", limit: 100, interval: "1m" })) instead of app.use(throttle).')
  })
})

test.each<[options: object, message: string]>([
  [
    { limit: undefined, plan: () => 'a' },
    'Option "plans" is missing. Option "plan" needs it. Add the limit of each plan, e.g. plans: { free: 60, pro: 600 }.',
  ],
  [{ plan: () => 'a' }, 'Option "plans" is missing'],
  [{ limit: undefined, plans: { a: 5 } }, 'Option "plan" is missing. With "plans", add plan: (req) => "free".'],
])('plan without plans, and plans without plan: %#', (options, message) => {
  for (const make of [policy, guard])
    expect(thrownBy(() => make(options))).toMatchObject({ code: 'WEIR_MISSING_OPTION', message: expect.stringContaining(message) })
})

describe('options of other libraries are answered by ours', () => {
  test.each([
    ['express-rate-limit', 'windowMs max keyGenerator skipFailedRequest standardHeaders legacyHeaders identifier passOnStoreError'],
    ['express-slow-down', 'delayAfter delayMs maxDelayMs'],
    [
      '@fastify/rate-limit',
      'timeWindow ban allowList redis nameSpace skipOnError groupId errorResponseBuilder onExceeding onExceeded onBanReach',
    ],
    ['koa-ratelimit', 'driver db duration errorMessage id whitelist blacklist disableHeader'],
    ['@nestjs/throttler', 'ttl throttlers storage skipIf ignoreUserAgents blockDuration getTracker generateKey setHeaders'],
    ['rate-limiter-flexible', 'points duration blockDuration execEvenly keyPrefix storeClient insuranceLimiter timeoutMs'],
    [
      'bottleneck',
      'minTime maxConcurrent highWater reservoir reservoirRefreshInterval reservoirRefreshAmount datastore clientOptions connection',
    ],
    ['p-queue, p-throttle, limiter', 'concurrency intervalCap tokensPerInterval'],
    ['@upstash/ratelimit', 'prefix timeout'],
    ['others', 'burst period trustProxy'],
  ])('%s', (_, names) => {
    for (const name of names.split(' ')) {
      const error = thrownBy(() => guard({ [name]: 5 })) as WeirError
      expect(error.code, name).toBe('WEIR_UNKNOWN_OPTION')
      expect(error.message).toContain(`Unknown option "${name}".`)
      expect(error.message).toMatch(/Did you mean "\w+"\?|[Uu]se \w+: |\w+\(.*\)/)
      expect(error.message, name).not.toContain('A policy has:')
    }
  })

  test('minTime is a pace, maxConcurrent a number of slots', () => {
    expect(thrownBy(() => policy({ minTime: 100 })).message).toContain('use limit: 1, interval: "100ms", and algorithm: leakyBucket()')
    expect(thrownBy(() => policy({ maxConcurrent: 5 })).message).toContain('use algorithm: concurrency()')
  })
})

describe('a number of milliseconds that looks like seconds', () => {
  async function warningsOf(options: object): Promise<string[]> {
    const made = policy({ name: 'api', ...options })
    const said: string[] = []
    made.on('warning', ({ error }) => said.push(`${error.code}: ${error.message}`))
    made.check('a')
    made.update([{ ...ONE, name: 'api', ...options }] as never)
    await made.close()
    return said
  }

  test.each([60, 300, 900, 999, 1_800, 3_600, 86_400])('%d is a warning that names both readings, once', async (interval) => {
    const [warning, ...more] = await warningsOf({ interval })
    expect(more).toEqual([])
    expect(warning).toMatch(/^WEIR_WARN_SHORT_DURATION: Option "interval" of policy "api" is the number \d+,/)
    expect(warning).toContain(`Use "${interval}s" if you mean seconds, or "${interval}ms" if you mean milliseconds.`)
  })

  test('so it is with a cooldown', async () => {
    const [warning, ...more] = await warningsOf({ cooldown: 30 })
    expect(more).toEqual([])
    expect(warning).toContain('Option "cooldown" of policy "api" is the number 30')
  })

  test.each(['60ms', '0.5s', 1_000, 1_500, 10_000, 60_000, 900_000, 3_600_000])('%j is none', async (interval) => {
    expect(await warningsOf({ interval })).toEqual([])
  })
})

describe('throttlers that are made again and again', () => {
  afterEach(() => vi.restoreAllMocks())

  /** The warnings of a process that has made no throttlers yet. */
  async function warningsOf(run: (fresh: typeof createThrottler) => unknown): Promise<string[]> {
    vi.resetModules()
    const said: string[] = []
    vi.spyOn(process, 'emitWarning').mockImplementation(((message: string, { code }: { code: string }) => {
      if (code === 'WEIR_WARN_MANY_THROTTLERS') said.push(message)
    }) as never)
    await run((await import('../src/index.ts')).createThrottler)
    await vi.dynamicImportSettled()
    return said
  }

  test('at one place, and never closed, are a warning with their number, the place and what to do, once', async () => {
    const [warning, ...more] = await warningsOf((fresh) => {
      for (let request = 0; request < 200; request++) fresh({ policies: [ONE] })
    })
    expect(more).toEqual([])
    expect(warning).toMatch(/^\d\d throttlers are open, and more are made at .*usual-mistakes\.test\.ts:\d+/)
    expect(warning).toContain('Call it once, when your application starts')
    expect(warning).toContain('"await throttler.close()"')
  })

  test('and closed are none, nor are as many as a large application may have', async () => {
    const said = await warningsOf(async (fresh) => {
      for (let reload = 0; reload < 200; reload++) await fresh({ policies: [ONE] }).close()
      for (let route = 0; route < 55; route++) fresh({ policies: [ONE] })
    })
    expect(said).toEqual([])
  })
})

function ioredisLike(): object {
  return { status: 'ready', options: { password: 'pa55' }, duplicate() {}, connect() {} }
}

function nodeRedisLike(): object {
  return { isReady: false, options: { password: 'pa55' }, duplicate() {}, sendCommand() {} }
}

function poolLike(): object {
  return { options: { password: 'pa55' }, totalCount: 0, query() {}, connect() {} }
}

describe('every function with options rejects options that it does not have, and a value in their place', () => {
  const FUNCTIONS: Readonly<Record<string, (options: never) => unknown>> = {
    fixedWindow,
    slidingWindow,
    slidingCounter: slidingCounter as (options: never) => unknown,
    slidingLog: slidingLog as (options: never) => unknown,
    tokenBucket,
    leakyBucket,
    concurrency,
    escalating,
    calendar: (options) => calendar('day', options),
    memoryStore,
    ipcStore,
    serveIpc,
    learnedEstimate,
    limitedFetch: (options) => limitedFetch(throttler({}), options),
    follow: (options) => follow(throttler({}), { name: 'a', interval: 1_000, read: async () => '{}' }, options),
    httpRules: (options) => httpRules('http://localhost', options),
  }

  test.each(Object.entries(FUNCTIONS))('%s', (name, make) => {
    for (const value of [5, 'x', ...(name === 'memoryStore' ? [null, {}] : [['x']])]) {
      const { code, message } = thrownBy(() => make(value as never))
      expect([code, message.includes(name)], message).toEqual(['WEIR_INVALID_OPTION', true])
    }
    if (name === 'memoryStore') return
    const { code, message } = thrownBy(() => make({ nothing: 5 } as never))
    expect(code).toBe('WEIR_UNKNOWN_OPTION')
    expect(message).toMatch(new RegExp(`^Unknown option "(\\w+\\.)?nothing"\\. (Remove it: )?${name}\\(\\) has(: | no options)`))
  })

  test("the message says which option was meant, and that the limit is the policy's", () => {
    expect(thrownBy(() => tokenBucket({ brust: 5 } as never)).message).toBe(
      'Unknown option "brust". Did you mean "burst"? tokenBucket() has: burst, warmUp, maxDebt, earlyDrop. See @weir/core/docs/errors/weir_unknown_option.md',
    )
    expect(thrownBy(() => (slidingWindow as (...given: unknown[]) => unknown)(10, '10 s')).message).toBe(
      'Option "slidingWindow" is 10. Use options such as { subWindows: 60 }. "limit" and "interval" are options of the policy. See @weir/core/docs/errors/weir_invalid_option.md',
    )
    expect(thrownBy(() => concurrency({ maxConcurrent: 5 } as never)).message).toContain('concurrency() has: maxDuration, releaseOn.')
  })
})
