import { Controller, Get, Post } from '@nestjs/common'
import { minutes, SkipThrottle, seconds, Throttle, type ThrottlerModuleOptions, type ThrottlerStorage } from '@nestjs/throttler'
import { expect } from 'vitest'
import { start } from './app.ts'

export interface Case {
  readonly title: string
  /** Whether time must pass, so that the case needs a clock that can be advanced. */
  readonly waits?: boolean
  run(storage: ThrottlerStorage, pass: (ms: number) => Promise<void>): Promise<void>
}

const ANY_SECONDS = expect.stringMatching(/^\d+$/)

@Controller()
class Plain {
  @Get()
  root() {
    return 'root'
  }

  @Get('other')
  other() {
    return 'other'
  }

  @Throttle({ default: { limit: 2, ttl: seconds(10) } })
  @Get('overridden')
  overridden() {
    return 'overridden'
  }

  @SkipThrottle()
  @Get('skipped')
  skipped() {
    return 'skipped'
  }
}

@Throttle({ default: { limit: 2, ttl: seconds(10), blockDuration: seconds(5) } })
@Controller('class')
class OfClass {
  @Get()
  root() {
    return 'root'
  }

  @Throttle({ default: { limit: 5, ttl: seconds(10), blockDuration: seconds(15) } })
  @Get('higher')
  higher() {
    return 'higher'
  }

  @Throttle({ default: { limit: 1, ttl: seconds(1), blockDuration: seconds(1) } })
  @Post('posted')
  posted() {
    return 'posted'
  }
}

@Controller()
class Several {
  @Get()
  root() {
    return 'root'
  }

  @SkipThrottle({ short: true })
  @Get('without-short')
  withoutShort() {
    return 'root'
  }

  @SkipThrottle({ default: true, long: true })
  @Get('only-short')
  onlyShort() {
    return 'root'
  }
}

@Controller()
class Named {
  @SkipThrottle({ custom: true })
  @Get('default')
  byDefault() {
    return 'default'
  }

  @SkipThrottle({ custom: true })
  @Get('default/other')
  byDefaultToo() {
    return 'default'
  }

  @SkipThrottle({ default: true })
  @Get('custom')
  byCustom() {
    return 'custom'
  }

  @SkipThrottle({ default: true })
  @Get('custom/other')
  byCustomToo() {
    return 'custom'
  }
}

const FIVE: ThrottlerModuleOptions = [{ limit: 5, ttl: minutes(60), ignoreUserAgents: [/spider/] }]
const SEVERAL: ThrottlerModuleOptions = [
  { limit: 2, ttl: seconds(5) },
  { name: 'long', limit: 5, ttl: minutes(1) },
  { name: 'short', limit: 1, ttl: seconds(1) },
]
const LONG_SEVERAL = SEVERAL.map((throttler) => ({ ...throttler, ttl: minutes(60) }))
const CUSTOM: ThrottlerModuleOptions = [
  { limit: 2, ttl: seconds(3) },
  {
    name: 'custom',
    limit: 2,
    ttl: seconds(3),
    getTracker: () => 'everyone',
    generateKey: (_context, tracker, name) => `${name} ${tracker}`,
  },
]

/** Sends `count` requests, which must be allowed, and a rejected one. */
async function useUp(app: Awaited<ReturnType<typeof start>>, path: string, count: number): Promise<void> {
  for (let left = count - 1; left >= 0; left--)
    expect(await app.limits(path)).toEqual({ status: '200', 'x-ratelimit-limit': `${count}`, 'x-ratelimit-remaining': `${left}` })
  const rejected = await app.get(path)
  expect([rejected.status, rejected.text]).toEqual([429, expect.stringContaining('ThrottlerException')])
}

async function withoutHeaders(storage: ThrottlerStorage, options: ThrottlerModuleOptions): Promise<void> {
  const app = await start(storage, options, [Plain])
  for (const status of ['200', '200', '200', '200', '200', '429']) expect(await app.limits('/')).toEqual({ status })
}

/** The cases of the tests of @nestjs/throttler 6.7 that concern a storage, in their order. */
export const PEER_CASES: readonly Case[] = [
  {
    title: 'counts a request',
    run: async (storage) => {
      const record = await storage.increment('key', 1000, 1, 0, 'test')
      expect(record).toMatchObject({ totalHits: 1, timeToExpire: 1, isBlocked: false })
    },
  },
  {
    title: 'a key that is blocked again and again changes nothing for another one',
    waits: true,
    run: async (storage, pass) => {
      let blocked = 0
      for (let round = 0; round < 10; round++) {
        expect((await storage.increment('slow', 100, 3, 100, 'test')).isBlocked).toBe(false)
        await storage.increment('fast', 100, 3, 100, 'test')
        if ((await storage.increment('fast', 100, 3, 100, 'test')).isBlocked) blocked++
        await pass(50)
      }
      expect(blocked).toBeGreaterThan(1)
    },
  },
  {
    title: 'answers have the headers of the limit',
    run: async (storage) => {
      const app = await start(storage, FIVE, [Plain])
      const { headers } = await app.get('/')
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-ratelimit-limit': '5',
        'x-ratelimit-remaining': '4',
        'x-ratelimit-reset': ANY_SECONDS,
      })
    },
  },
  {
    title: 'a request above the limit is rejected, with Retry-After and without the other headers',
    run: async (storage) => {
      const app = await start(storage, FIVE, [Plain])
      await useUp(app, '/', 5)
      expect(await app.limits('/')).toEqual({ status: '429', 'retry-after': ANY_SECONDS })
    },
  },
  {
    title: '@Throttle() overrides the options',
    run: async (storage) => {
      const app = await start(storage, FIVE, [Plain])
      expect(await app.limits('/overridden')).toEqual({ status: '200', 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
    },
  },
  {
    title: 'ignored user agents are not counted',
    run: async (storage) => {
      const app = await start(storage, FIVE, [Plain])
      expect(await app.limits('/', { headers: { 'user-agent': 'a spider' } })).toEqual({ status: '200' })
      expect(await app.limits('/')).toMatchObject({ 'x-ratelimit-remaining': '4' })
    },
  },
  {
    title: 'limit and ttl may be functions',
    run: async (storage) => {
      const app = await start(storage, [{ limit: () => 5, ttl: async () => minutes(60) }], [Plain])
      await useUp(app, '/', 5)
    },
  },
  {
    title: 'no headers with setHeaders: false of a throttler',
    run: (storage) => withoutHeaders(storage, [{ limit: 5, ttl: minutes(60), setHeaders: false }]),
  },
  {
    title: 'no headers with setHeaders: false of the module',
    run: (storage) => withoutHeaders(storage, { throttlers: [{ limit: 5, ttl: minutes(60) }], setHeaders: false }),
  },
  {
    title: '@SkipThrottle() counts nothing',
    run: async (storage) => {
      const app = await start(storage, FIVE, [Plain])
      expect(await app.limits('/skipped')).toEqual({ status: '200' })
    },
  },
  {
    title: 'after a block that is shorter than the ttl, the key starts with no hits',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, FIVE, [OfClass])
      await useUp(app, '/class', 2)
      expect(await app.limits('/class')).toEqual({ status: '429', 'retry-after': '5' })
      await pass(seconds(5))
      await useUp(app, '/class', 2)
    },
  },
  {
    title: 'a block that is longer than the ttl continues in the next window',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, FIVE, [OfClass])
      await useUp(app, '/class/higher', 5)
      expect(await app.limits('/class/higher')).toEqual({ status: '429', 'retry-after': '15' })
      await pass(seconds(12))
      expect(await app.limits('/class/higher')).toEqual({ status: '429', 'retry-after': '3' })
      await pass(seconds(3))
      await useUp(app, '/class/higher', 5)
    },
  },
  {
    title: 'options of the module with a shorter block',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, [{ limit: 5, ttl: minutes(1), blockDuration: seconds(20) }], [Plain])
      await useUp(app, '/', 5)
      await pass(seconds(20))
      await useUp(app, '/', 5)
    },
  },
  {
    title: 'a block of the ttl',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, FIVE, [OfClass])
      const post = async () => (await app.get('/class/posted', { method: 'POST' })).status
      expect(await post()).toBe(201)
      await pass(seconds(1))
      expect([await post(), await post(), await post()]).toEqual([201, 429, 429])
    },
  },
  {
    title: 'skipIf counts nothing',
    run: async (storage) => {
      const app = await start(storage, [{ limit: 5, ttl: minutes(60), skipIf: () => true }], [Plain])
      for (let request = 0; request < 15; request++) expect(await app.limits('/')).toEqual({ status: '200' })
    },
  },
  {
    title: 'several throttlers reject one after the other',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, SEVERAL, [Several])
      const remaining = { long: 'x-ratelimit-remaining-long', default: 'x-ratelimit-remaining', short: 'x-ratelimit-remaining-short' }
      expect(await app.limits('/')).toMatchObject({ status: '200', [remaining.short]: '0', 'x-ratelimit-limit-short': '1' })
      expect(await app.limits('/')).toMatchObject({ status: '429', 'retry-after-short': ANY_SECONDS })
      await pass(seconds(1))
      expect(await app.limits('/')).toMatchObject({ status: '200', [remaining.default]: '0', 'x-ratelimit-limit': '2' })
      await pass(seconds(1))
      expect(await app.limits('/')).toMatchObject({ status: '429', 'retry-after': ANY_SECONDS })
      await pass(seconds(5))
      expect(await app.limits('/')).toMatchObject({ 'x-ratelimit-limit-long': '5', [remaining.long]: '2', [remaining.short]: '0' })
      await pass(seconds(1))
      expect(await app.limits('/')).toMatchObject({ status: '200', [remaining.default]: '0' })
      await pass(seconds(5))
      expect(await app.limits('/')).toMatchObject({ [remaining.long]: '0', [remaining.short]: '0', [remaining.default]: '1' })
      await pass(seconds(1))
      expect(await app.limits('/')).toMatchObject({ status: '429', 'retry-after-long': ANY_SECONDS })
    },
  },
  {
    title: '@SkipThrottle() of one of several throttlers',
    run: async (storage) => {
      const app = await start(storage, LONG_SEVERAL, [Several])
      expect(await app.limits('/without-short')).toMatchObject({ 'x-ratelimit-remaining': '1' })
      expect(await app.limits('/without-short')).toMatchObject({ 'x-ratelimit-remaining': '0' })
    },
  },
  {
    title: '@SkipThrottle() of two of several throttlers',
    run: async (storage) => {
      const app = await start(storage, LONG_SEVERAL, [Several])
      expect(await app.limits('/only-short')).toEqual({
        status: '200',
        'x-ratelimit-limit-short': '1',
        'x-ratelimit-remaining-short': '0',
      })
    },
  },
  {
    title: 'each handler has counts of its own',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, CUSTOM, [Named])
      expect(await app.limits('/default')).toEqual({ status: '200', 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
      expect(await app.limits('/default/other')).toMatchObject({ status: '200', 'x-ratelimit-remaining': '1' })
      expect(await app.limits('/default')).toMatchObject({ status: '200', 'x-ratelimit-remaining': '0' })
      expect(await app.limits('/default')).toEqual({ status: '429', 'retry-after': ANY_SECONDS })
      expect(await app.limits('/default/other')).toMatchObject({ status: '200', 'x-ratelimit-remaining': '0' })
      expect(await app.limits('/default')).toEqual({ status: '429', 'retry-after': ANY_SECONDS })
      await pass(seconds(3))
      expect(await app.limits('/default')).toEqual({ status: '200', 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
    },
  },
  {
    title: 'getTracker and generateKey let handlers share their counts',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, CUSTOM, [Named])
      for (let window = 0; window < 2; window++) {
        expect(await app.limits('/custom')).toEqual({
          status: '200',
          'x-ratelimit-limit-custom': '2',
          'x-ratelimit-remaining-custom': '1',
        })
        expect(await app.limits('/custom/other')).toMatchObject({ status: '200', 'x-ratelimit-remaining-custom': '0' })
        expect(await app.limits('/custom')).toEqual({ status: '429', 'retry-after-custom': ANY_SECONDS })
        expect(await app.limits('/custom/other')).toEqual({ status: '429', 'retry-after-custom': ANY_SECONDS })
        await pass(seconds(3))
      }
    },
  },
  ...(['default', 'custom'] as const).map(
    (name): Case => ({
      title: `an error message contains the details of the throttler "${name}"`,
      run: async (storage) => {
        const options: ThrottlerModuleOptions = {
          throttlers: ['default', 'custom'].map((each) => ({ name: each, limit: 2, ttl: minutes(60) })),
          errorMessage: (context, { tracker, totalHits, limit, ttl, isBlocked }) =>
            [context.getClass().name, context.getHandler().name, tracker, totalHits, limit, ttl, isBlocked].join(' '),
        }
        const app = await start(storage, options, [Named])
        await app.get(`/${name}`)
        await app.get(`/${name}`)
        const handler = name === 'default' ? 'byDefault' : 'byCustom'
        const { status, text } = await app.get(`/${name}`)
        expect([status, text]).toEqual([429, expect.stringContaining(`Named ${handler} 127.0.0.1 3 2 3600000 true`)])
      },
    }),
  ),
]
