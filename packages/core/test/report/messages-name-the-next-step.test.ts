import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { UsualTime } from '../../src/central/usual-time.ts'
import { createGuard } from '../../src/http/guard.ts'
import { header } from '../../src/http/index.ts'
import { concurrency, createThrottler, memoryStore, parseDuration, slidingLog, type Throttler, WeirError } from '../../src/index.ts'
import { MARK } from '../../src/ipc/envelope.ts'
import { serveIpc } from '../../src/ipc/index.ts'
import { codeNotLoaded } from '../../src/report/errors.ts'
import { Once } from '../../src/report/once.ts'
import { pageOf } from '../../src/report/page.ts'
import { NoAnswer } from '../../src/report/user-function.ts'
import { checkRules, follow, parseRules } from '../../src/rules/index.ts'
import type { StoreNode } from '../../src/store/contract.ts'
import { backgroundStore } from '../../src/sync/index.ts'
import { tellDifferences } from '../../src/sync/link/differing-rules.ts'
import { noticeSmallLimits } from '../../src/sync/link/small-limits.ts'
import { fakeReader } from '../http/fake-request.ts'
import { thrownBy } from '../support/nodes.ts'
import { World } from '../support/world.ts'

const RULE = { key: 'all', name: 'api', limit: 5, interval: '1m', coordination: 'local' } as const
const made = (...policies: object[]): Throttler => createThrottler({ policies: policies as never })
const rejected = (run: () => unknown) =>
  (async () => run())().then(
    () => undefined,
    (error: WeirError) => error,
  )

/** The warning of a throttler. */
async function warned(throttler: Throttler, run: () => unknown): Promise<WeirError | undefined> {
  const heard: WeirError[] = []
  throttler.on('warning', ({ error }) => heard.push(error))
  await run()
  if (heard.length === 0) await vi.waitFor(() => expect(heard).not.toEqual([]))
  await throttler.close()
  return heard[0]
}

/** The warning of a guard about a request. */
const guarded = (options: object, reader: object = fakeReader) => {
  const guard = createGuard({ ...RULE, ...options } as never, reader as never)
  return warned(guard.throttler as Throttler, () => guard.check({ ip: '192.0.2.1' } as never))
}

/** The warning of a process. */
function emitted(run: () => void): { message: string; code: string } {
  const spy = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  try {
    run()
    const [[message, { code }]] = spy.mock.calls as unknown as [[string, { code: string }]]
    return { message, code }
  } finally {
    spy.mockRestore()
  }
}

/** The warning of a process that has not warned yet, because most of these warnings are logged only once. */
async function warnedFirst(
  run: (warnings: typeof import('../../src/throttler/warnings.ts')) => void,
): Promise<{ message: string; code: string }> {
  vi.resetModules()
  const warnings = await import('../../src/throttler/warnings.ts')
  return emitted(() => run(warnings))
}

/** A store whose connection syncs with this function. */
function storeThat(sync: () => Promise<unknown>, opened: (node: StoreNode) => void = () => {}) {
  const open = (node: StoreNode) => {
    opened(node)
    return { sync, close: async () => {} } as never
  }
  return backgroundStore({ kind: 'test', open })
}

async function syncFailed(world: World, sync: () => Promise<unknown>): Promise<unknown> {
  const throttler = createThrottler({ policies: [{ limit: 5, interval: '1s' }], store: storeThat(sync), clock: world.clock() })
  const errors: unknown[] = []
  throttler.on('syncFailed', ({ error }) => errors.push(error))
  throttler.start()
  await world.run(300_000)
  return errors[0]
}

function replaced(): Promise<WeirError | undefined> {
  const store = memoryStore()
  const make = (limit: number) => createThrottler({ policies: [{ ...RULE, coordination: 'background', limit }], store })
  const heard: WeirError[] = []
  for (const limit of [5, 6]) make(limit).on('warning', ({ error }) => heard.push(error))
  return vi.waitFor(() => expect(heard).not.toEqual([])).then(() => heard[0])
}

interface Case {
  readonly make: () => unknown
  /** The user's own words: an option, a policy, a call. */
  readonly names: string
  /** The wrong value. */
  readonly value?: string
  readonly step: string
}

/** One message for each code. */
const CASES: Readonly<Record<string, Case>> = {
  WEIR_INVALID_OPTION: {
    make: () => thrownBy(() => made(RULE, { ...RULE, name: 'b', limit: 0 })),
    names: '"policies[1].limit"',
    value: ' is 0.',
    step: 'Use a number of at least 1, or a function of the request. To reject every request, use limit: () => 0',
  },
  WEIR_UNKNOWN_OPTION: {
    make: () => thrownBy(() => made({ ...RULE, windowMs: 5 })),
    names: '"windowMs"',
    step: 'Did you mean "interval"?',
  },
  WEIR_MISSING_OPTION: { make: () => thrownBy(() => made({ interval: '1m' })), names: '"limit"', step: 'Set it, e.g. limit: 100.' },
  WEIR_DUPLICATE_POLICY: {
    make: () => thrownBy(() => made({ limit: 1, interval: '1m' }, { limit: 2, interval: '1m' })),
    names: 'policies[0] and policies[1]',
    value: '"default", the name of policies without one',
    step: 'Give each a different "name".',
  },
  WEIR_UNKNOWN_POLICY: {
    make: () => thrownBy(() => made(RULE).reset('a', { policy: 'logon' })),
    names: 'Unknown policy',
    value: '"logon"',
    step: 'This throttler has "api".',
  },
  WEIR_INVALID_KEY: {
    make: () => thrownBy(() => made(RULE).check(42 as never)),
    names: 'A key',
    value: '42',
    step: 'Pass a string, e.g. String(id).',
  },
  WEIR_WARN_UNBOUNDED_KEY: {
    make: () => guarded({ key: () => '/a?b=1' }),
    names: '"api"',
    value: 'a URL with its query',
    step: 'use key: "route"',
  },
  WEIR_WARN_INVALID_COST: {
    make: () => {
      const throttler = made(RULE)
      return warned(throttler, () => throttler.check('a', { cost: -1 }))
    },
    names: '"cost"',
    value: '-1',
    step: 'Use a finite number > 0.',
  },
  WEIR_WARN_INVALID_LIMIT: {
    make: () => {
      const throttler = made(RULE)
      return warned(throttler, () => throttler.check('a', { limit: -1 }))
    },
    names: 'check(key, { limit:',
    value: '-1',
    step: '"limit" must be 0, Infinity or at least 1',
  },
  WEIR_WARN_CALLBACK_FAILED: { make: () => guarded({ match: () => 'yes' }), names: '"api"', value: '"yes"', step: 'Return true or false.' },
  WEIR_WARN_TRUST_PROXY: {
    make: () => guarded({ key: 'ip' }, { ...fakeReader, forgeable: () => 'trust proxy is true' }),
    names: 'trust proxy is true',
    step: 'Trust only your own proxies.',
  },
  WEIR_WARN_OPTION_FUNCTION_FAILED: {
    make: () =>
      guarded({
        skip: () => {
          throw new Error('no user')
        },
      }),
    names: '"skip"',
    value: 'no user',
    step: '',
  },
  WEIR_ASYNC_POLICY: {
    make: () => thrownBy(() => made({ ...RULE, delay: '1s' }).check('a')),
    names: '"api"',
    step: 'Use await throttler.checkAsync(key).',
  },
  WEIR_CLOSED: {
    make: async () => {
      const throttler = made(RULE)
      await throttler.close()
      return thrownBy(() => throttler.check('a'))
    },
    names: 'close()',
    step: 'Close it after the server has stopped accepting requests.',
  },
  WEIR_NOT_ACQUIRED: {
    make: async () => {
      const throttler = made({ ...RULE, limit: 1 })
      throttler.check('a')
      return await rejected(() => throttler.acquire('a', { timeout: 5 }))
    },
    names: '"a"',
    value: '5 ms',
    step: 'Raise "timeout", or try again later.',
  },
  WEIR_STORE_UNAVAILABLE: {
    make: () => {
      const store = storeThat(() => Promise.reject(new Error('connect ECONNREFUSED')))
      const throttler = createThrottler({ policies: [{ limit: 5, interval: '1m' }], store })
      return warned(throttler, () => throttler.start())
    },
    names: '"test"',
    value: 'ECONNREFUSED',
    step: 'Check its address',
  },
  WEIR_STORE_TIMEOUT: {
    make: () => syncFailed(new World(), () => new Promise(() => {})),
    names: 'store',
    step: 'Check the store and the network.',
  },
  WEIR_STORE_REPLY: { make: () => syncFailed(new World(), async () => ({})), names: 'store', value: '"time"', step: 'check its sync()' },
  WEIR_WARN_QUOTA_LOST: {
    make: () => {
      let node: StoreNode | undefined
      const store = storeThat(
        () => new Promise(() => {}),
        (opened) => {
          node = opened
        },
      )
      const throttler = createThrottler({ policies: [{ name: 'api', limit: 5, interval: '1m' }], store })
      const [policy] = throttler.policies
      return warned(throttler, () => {
        throttler.start()
        node?.announced({ type: 'lease', policyId: policy?.id ?? '', key: 'a', ordinal: 1 as never, free: 0, tail: false, lost: true })
      })
    },
    names: '"api"',
    value: '"test"',
    step: 'Use persistence, and noeviction for Redis.',
  },
  WEIR_WARN_RULES_DIFFER: {
    make: () => {
      const rule = (interval: number) => ['api', interval, 'fixed-window', 'background', 'a', 'b', 5, 0, 6, {}] as const
      let heard: WeirError | undefined
      const warn = (error: WeirError) => {
        heard = error
      }
      const host = { nodeId: 'me', emitter: { has: () => false, emit: () => {} }, isFollowing: () => false, warn }
      tellDifferences([rule(60_000)], { node: 'abc', rules: JSON.stringify([rule(1_000)]) } as never, host as never, new Once())
      return heard
    },
    names: '"api"',
    value: '"interval" is 60000 here and 1000 there',
    step: 'Otherwise rename one of them.',
  },
  WEIR_WARN_POLICY_REPLACED: { make: replaced, names: '"api"', value: '"limit" is 5 and 6', step: 'give each policy a different "name"' },
  WEIR_RULES_REJECTED: {
    make: () => thrownBy(() => checkRules(parseRules('{"version":1,"policies":[{"key":"ip","limit":0,"interval":"1m"}]}'))),
    names: 'policies[0].limit',
    value: ' is 0.',
    step: 'Use a number of at least 1, or the name of a function.',
  },
  WEIR_WARN_RULES_SOURCE: {
    make: () => {
      const throttler = made(RULE)
      return warned(throttler, () => {
        follow(throttler, { name: 'rules.json', interval: 60_000, read: () => Promise.reject(new Error('EACCES')) })
      })
    },
    names: 'rules.json',
    value: 'EACCES',
    step: 'Check the source.',
  },
  WEIR_WARN_SMALL_LIMIT: {
    make: () => {
      let heard: WeirError | undefined
      const warn = (error: WeirError) => {
        heard = error
      }
      const limiters = [{ policy: { name: 'api', limit: 5, coordination: 'background' } }]
      noticeSmallLimits([{ limiters, warn }] as never, 3)
      return heard
    },
    names: '"limit" of policy "api"',
    value: ' is 5,',
    step: 'use coordination: "leased"',
  },
  WEIR_WARN_UTC_INTERVAL: {
    make: () => {
      const throttler = made({ ...RULE, interval: '7d' })
      return warned(throttler, () => throttler.start())
    },
    names: '"api"',
    value: '7 d',
    step: 'use interval: calendar("week"',
  },
  WEIR_WARN_SHORT_DURATION: {
    make: () => {
      const throttler = made({ ...RULE, interval: 60 })
      return warned(throttler, () => throttler.start())
    },
    names: '"interval" of policy "api"',
    value: '60',
    step: 'Use "60s" if you mean seconds',
  },
  WEIR_WARN_SLOT_EXPIRED: {
    make: () => {
      const world = new World()
      const policy = { name: 'api', limit: 5, algorithm: concurrency({ maxDuration: '1s' }), coordination: 'local' } as const
      const throttler = createThrottler({ policies: [policy], clock: world.clock() })
      throttler.check('a')
      return warned(throttler, () => world.run(10_000))
    },
    names: '"api"',
    value: '1000 ms',
    step: 'raise "maxDuration"',
  },
  WEIR_WARN_RESERVATION_EXPIRED: {
    make: () => {
      const world = new World()
      const throttler = createThrottler({ policies: [RULE], clock: world.clock() })
      throttler.reserve('a', { cost: { api: 1 }, ttl: '1s' })
      return warned(throttler, () => world.run(10_000))
    },
    names: '"api"',
    value: 'ttl',
    step: 'Call settle() or cancel() in a finally.',
  },
  WEIR_WARN_STORE_SLOW: {
    make: () => {
      let message = ''
      const usual = new UsualTime((text) => {
        message = text
      })
      for (let i = 0; i < 30; i++) usual.took({ sent: 0, storeTimeout: 50 }, 15)
      return new WeirError('WEIR_WARN_STORE_SLOW', message)
    },
    names: '"storeTimeout"',
    value: '50 ms',
    step: 'Raise "storeTimeout", or move the store closer.',
  },
  WEIR_NOT_LOADED: {
    make: () => codeNotLoaded('Redis', new Error('EMFILE')),
    names: 'Redis',
    value: 'EMFILE',
    step: 'Check that the files',
  },
  WEIR_WARN_MANY_THROTTLERS: {
    make: async () => {
      vi.resetModules()
      const { noticeMany } = await import('../../src/throttler/many-throttlers.ts')
      return emitted(() => {
        for (let open = 50; open < 70; open++) noticeMany([['    at handle (/app/limits.js:2:3)'], []], open)
      })
    },
    names: 'throttle() or createThrottler()',
    value: 'throttlers are open',
    step: 'Call it once, when your application starts.',
  },
  WEIR_WARN_LOCAL_ONLY: {
    make: () => warnedFirst(({ warnLocal }) => warnLocal()),
    names: '"store"',
    step: 'Add a store such as redisStore(...).',
  },
  WEIR_WARN_FAKE_TIME: {
    make: () => warnedFirst(({ warnOfFakeTimers }) => warnOfFakeTimers('redis')),
    names: '"redis"',
    step: 'Use memoryStore() in this test',
  },
  WEIR_WARN_IPC_MESSAGE: {
    make: () => {
      const child = Object.assign(new EventEmitter(), { pid: 4711 })
      const service = serveIpc({ children: [child as never] })
      return emitted(() => {
        child.emit('message', { [MARK]: 'nonsense' })
        service.close()
      })
    },
    names: 'child process 4711',
    value: 'a message',
    step: 'Use the same version of @weir/core in all processes.',
  },
  WEIR_WARN_LISTENER_FAILED: {
    make: () => warnedFirst(({ warnOfListener }) => warnOfListener('blocked', new NoAnswer('threw', new Error('x')))),
    names: '"blocked"',
    value: '"x"',
    step: 'Fix the listener',
  },
}

/** Codes of servers to which other programs write, and the tests that make them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  WEIR_WARN_STORE_VALUE: '../redis/test/unreadable-members.test.ts',
}
/** The code whose message is sent to clients. */
const FOR_CLIENTS = 'WEIR_THROTTLED'

const errorsPage = readFileSync(new URL('../../../../docs/reference/errors.md', import.meta.url), 'utf8')
const codes = [...errorsPage.matchAll(/^### (WEIR_\w+)$/gm)].map(([, code]) => code as string)

test('every code has a message here, or a test elsewhere', () => {
  expect([...Object.keys(CASES), ...Object.keys(ELSEWHERE), FOR_CLIENTS].sort()).toEqual([...codes].sort())
  for (const [code, file] of Object.entries(ELSEWHERE)) {
    expect(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')).toContain(code)
  }
})

test.each(Object.entries(CASES))(
  '%s: the message names what is wrong, shows the value, and ends with the next step and the page',
  async (code, one) => {
    const error = (await one.make()) as WeirError
    expect(error?.code).toBe(code)
    const { message } = error
    expect(message).toContain(one.names)
    expect(message).toContain(one.value ?? '')
    expect(message).toContain(one.step)
    expect(message.endsWith(`. See ${pageOf(code)}`) || message.endsWith(` See ${pageOf(code)}`), message).toBe(true)
    expect(message.split('@weir/core/docs/errors/')).toHaveLength(2)
  },
)

test('a message for clients does not name a page', () => {
  expect(new WeirError('WEIR_THROTTLED', 'Too many requests. Try again in 5 s.').message).toBe('Too many requests. Try again in 5 s.')
})

describe('options', () => {
  const background = (more: object) =>
    createThrottler({ store: memoryStore(), policies: [{ name: 'api', limit: 5, interval: '1m', ...more } as never] })

  test.each<[string, () => unknown, string]>([
    [
      'no unit',
      () => parseDuration('60', 'interval', 10),
      'Option "interval" is "60", which has no unit. Use "60s", or the number 60 for milliseconds (at least 10 ms).',
    ],
    [
      'a missing coordination',
      () => background({ algorithm: slidingLog() }),
      'slidingLog() can\'t sync in the background, the default with a store. Set "coordination" to "local" (each process counts alone) or "central" (the store decides each request).',
    ],
    [
      'a timeout that applies to no request',
      () => background({ storeTimeout: '20ms' }),
      'Remove "storeTimeout": it applies only to "leased" and "central". With "background" no request waits.',
    ],
    [
      'two of one meaning',
      () => background({ delay: '2s', cooldown: '1m' }),
      'Use either "delay" or "cooldown": a cooldown blocks the key whose request "delay" would make wait.',
    ],
    [
      'an interval that is too short',
      () => background({ interval: 20, spans: 30 }),
      'Option "interval" is 20 ms, too short for 30 spans of at least 5 ms. Use at least 150 ms, or fewer "spans".',
    ],
    [
      'a value of a few',
      () => background({ failMode: 'fail-open' }),
      'Option "failMode" is "fail-open". Use "share" (this process\'s part of the limit), "open" (allow all) or "closed" (reject all).',
    ],
    [
      'a function that must be imported',
      () => background({ cooldown: { factor: 2 } }),
      "Import it: import { escalating } from '@weir/express', or from your adapter's package.",
    ],
    ['a header that is none', () => header('a b'), 'Option "header" is "a b". Use the name of a header'],
  ])('%s', (_, make, message) => {
    expect(thrownBy(make).message).toContain(message)
  })

  test('a request as a key is not shown, as it may hold secrets', () => {
    const { message } = thrownBy(() => made(RULE).check({ headers: { authorization: 'secret' } } as never))
    expect(message).toContain('It is an object. Pass a string such as req.ip.')
    expect(message).not.toContain('secret')
  })

  test.each([
    ['windowMs', 'interval'],
    ['max', 'limit'],
    ['keyGenerator', 'key'],
    ['standardHeaders', 'headers'],
    ['points', 'limit'],
    ['duration', 'interval'],
    ['blockDuration', 'cooldown'],
    ['insuranceLimiter', 'failMode'],
    ['timeWindow', 'interval'],
    ['allowList', 'allow'],
    ['redis', 'store'],
    ['cache', 'maxKeys'],
    ['reservoir', 'limit'],
    ['throw', 'throwOnReject'],
    ['id', 'key'],
    ['ttl', 'interval'],
    ['getTracker', 'key'],
  ])('%s of another library is answered by "%s"', (theirs, ours) => {
    const { message } = thrownBy(() => createGuard({ ...RULE, [theirs]: 5 } as never, fakeReader))
    expect(message).toContain(`Unknown option "${theirs}". Did you mean "${ours}"?`)
  })

  test.each(['keyPrefix', 'nameSpace', 'execEvenly', 'minTime', 'maxConcurrent', 'sendCommand', 'resetExpiryOnChange'])(
    '%s of another library is answered by what to use',
    (theirs) => {
      const { message } = thrownBy(() => createGuard({ ...RULE, [theirs]: 5 } as never, fakeReader))
      expect(message).toMatch(new RegExp(`Unknown option "${theirs}"\\. (For|It is an option of|Pass) .*(: |\\()`))
    },
  )
})
