import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  Post,
  UseGuards,
  Version,
  VersioningType,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { manualClock } from '@weir/testing'
import { describe, expect, test } from 'vitest'
import {
  createThrottler,
  InjectThrottler,
  SkipThrottle,
  Throttle,
  ThrottleGuard,
  ThrottleModule,
  type ThrottleOptions,
} from '../src/index.ts'
import { PLATFORMS } from './platforms.ts'

const ONE = { limit: 1, interval: '1h', key: 'all', clock: manualClock() } as const

describe.each(PLATFORMS)('on $name', ({ adapter }) => {
  /** Starts an application, and returns a function that sends requests to it. */
  async function start(
    module: object,
  ): Promise<{ statuses: (...paths: string[]) => Promise<number[]>; url: string; close: () => Promise<void> }> {
    const app = await NestFactory.create(module as never, adapter(), { logger: false, abortOnError: false })
    app.setGlobalPrefix('api')
    app.enableVersioning({ type: VersioningType.URI })
    await app.listen(0, '127.0.0.1')
    const url = `http://127.0.0.1:${app.getHttpServer().address().port}/api`
    const statuses = async (...paths: string[]) => {
      const found: number[] = []
      for (const path of paths) found.push((await fetch(url + path)).status)
      return found
    }
    return { statuses, url, close: () => app.close() }
  }

  async function statusesOf(module: object, ...paths: string[]): Promise<number[]> {
    const { statuses, close } = await start(module)
    try {
      return await statuses(...paths)
    } finally {
      await close()
    }
  }

  const appOf = (controller: unknown, options: object = ONE, extras = {}) => {
    @Module({ imports: [ThrottleModule.forRoot(options as ThrottleOptions, extras)], controllers: [controller as never] })
    class App {}
    return App
  }

  test('a decorator is one limit: on a handler its own, on a class one that its handlers share', async () => {
    @Controller('cats')
    class Cats {
      @Get()
      all() {}
      @Throttle({ limit: 2 })
      @Get('own')
      own() {}
    }
    expect(await statusesOf(appOf(Cats), '/cats', '/cats', '/cats/own', '/cats/own', '/cats/own')).toEqual([200, 429, 200, 200, 429])

    @Throttle({ limit: 2 })
    @Controller('dogs')
    class Dogs {
      @Get('a')
      a() {}
      @Get('b')
      b() {}
      @Throttle({ limit: 1 })
      @Get('c')
      c() {}
    }
    expect(await statusesOf(appOf(Dogs), '/dogs/a', '/dogs/b', '/dogs/a', '/dogs/c', '/dogs/c')).toEqual([200, 200, 429, 200, 429])
  })

  test('@SkipThrottle leaves a handler or class unlimited, and @SkipThrottle(false) takes a handler back in', async () => {
    @SkipThrottle()
    @Controller('free')
    class Free {
      @Get()
      free() {}
      @SkipThrottle(false)
      @Get('not')
      not() {}
    }
    expect(await statusesOf(appOf(Free), '/free', '/free', '/free/not', '/free/not')).toEqual([200, 200, 200, 429])
  })

  test('requests are counted by the whole pattern of their route: prefix and version included', async () => {
    @Controller('users')
    class Users {
      @Version('1')
      @Get(':name')
      one() {}
      @Version('2')
      @Get(':name')
      two() {}
    }
    const module = appOf(Users, { ...ONE, key: 'route' })
    expect(await statusesOf(module, '/v1/users/ann', '/v1/users/bob', '/v2/users/ann', '/v2/users/bob')).toEqual([200, 429, 200, 429])
  })

  test('peek of the guard shows how a handler would be decided, and counts nothing', async () => {
    const seen: unknown[] = []
    @Injectable()
    class Peeks implements CanActivate {
      readonly #guard: ThrottleGuard
      constructor(guard: ThrottleGuard) {
        this.#guard = guard
      }
      async canActivate(context: ExecutionContext): Promise<boolean> {
        const decision = await this.#guard.peek(context)
        seen.push(decision && [decision.policy?.name, decision.remaining, decision.allowed])
        return true
      }
    }
    Reflect.defineMetadata('design:paramtypes', [ThrottleGuard], Peeks)
    @Controller()
    @UseGuards(Peeks, Peeks)
    class Routes {
      @Get('all')
      all() {}
      @Throttle({ limit: 5 })
      @Get('own')
      own() {}
      @SkipThrottle()
      @Get('none')
      none() {}
    }
    await statusesOf(appOf(Routes, { ...ONE, limit: 2 }, { guard: true }), '/all', '/own', '/none', '/all')
    const twice = (...one: unknown[]) => [one, one]
    expect(seen).toEqual([
      ...twice('default', 1, true),
      ...twice('Routes.own', 4, true),
      undefined,
      undefined,
      ...twice('default', 0, false),
    ])
  })

  test('with guard: false only what has @UseGuards(ThrottleGuard) is limited, after the guards before it', async () => {
    @Injectable()
    class Authenticated implements CanActivate {
      canActivate(context: ExecutionContext) {
        const request = context.switchToHttp().getRequest()
        request.user = { name: new URL(request.url, 'http://h').searchParams.get('user') }
        return true
      }
    }
    @Controller()
    class Pages {
      @Get('open')
      open() {}
      @UseGuards(Authenticated, ThrottleGuard)
      @Get('mine')
      mine() {}
    }
    const key = (context: ExecutionContext) => context.switchToHttp().getRequest().user?.name
    const module = appOf(Pages, { ...ONE, key }, { guard: false })
    const paths = ['/open', '/open', '/mine?user=ann', '/mine?user=bob', '/mine?user=ann']
    expect(await statusesOf(module, ...paths)).toEqual([200, 200, 200, 200, 429])
  })

  test('options may come from other providers, and the throttler may be injected', async () => {
    @Injectable()
    class Settings {
      readonly limit = 1
    }
    @Module({ providers: [Settings], exports: [Settings] })
    class SettingsModule {}
    @Controller()
    class Pages {
      @Get('page')
      page() {}
      @SkipThrottle()
      @Post('reset')
      reset() {
        this.throttler.reset('all')
      }
      declare readonly throttler: { reset(key: string): void }
    }
    InjectThrottler()(Pages.prototype, 'throttler')
    @Module({
      imports: [
        ThrottleModule.forRootAsync({
          imports: [SettingsModule],
          inject: [Settings],
          useFactory: async ({ limit }: Settings) => ({ ...ONE, limit }),
        }),
      ],
      controllers: [Pages],
    })
    class App {}
    const { statuses, url, close } = await start(App)
    expect(await statuses('/page', '/page')).toEqual([200, 429])
    expect((await fetch(`${url}/reset`, { method: 'POST' })).status).toBe(201)
    expect(await statuses('/page', '/page')).toEqual([200, 429])
    await close()
  })

  test('options that can not be used stop the start, and name the handler', async () => {
    @Controller()
    class Pages {
      @Throttle({ limt: 5 } as never)
      @Get('page')
      page() {}
    }
    await expect(start(appOf(Pages))).rejects.toThrow(/@Throttle of Pages\.page: .*"limt".*"limit"/)
    @Throttle({ limit: -1 })
    @Controller()
    class Others {
      @Get('page')
      page() {}
    }
    await expect(start(appOf(Others))).rejects.toThrow(/@Throttle of Others: .*limit/)
    for (const given of [undefined, null, false, true, 5])
      expect(() => Throttle(given as never)).toThrow(/@Throttle\(\).*@SkipThrottle\(\)/)
  })

  test('a throttler that was given is not closed with the application', async () => {
    @Controller()
    class Pages {
      @Get('page')
      page() {}
    }
    const { clock, ...policy } = ONE
    const throttler = createThrottler({ clock, policies: [policy] })
    expect(await statusesOf(appOf(Pages, { throttler }), '/page', '/page')).toEqual([200, 429])
    expect(throttler.peek('all').remaining).toBe(0)
    throttler.reset('all')
    expect(throttler.check('all').allowed).toBe(true)
    await throttler.close()
  })

  test('the module without forRoot stops the start; beside one with it, it is the same', async () => {
    @Module({ imports: [ThrottleModule] })
    class Bare {}
    await expect(start(Bare)).rejects.toMatchObject({
      code: 'WEIR_MISSING_OPTION',
      message: expect.stringContaining('Add imports: [ThrottleModule.forRoot({'),
    })
    @Controller('cats')
    class Cats {
      @Get()
      all() {}
    }
    @Module({ imports: [Bare, appOf(Cats)] })
    class App {}
    expect(await statusesOf(App, '/cats', '/cats')).toEqual([200, 429])
  })

  test.each(['a handler', 'a class'])('a decorator of %s stops the start of a server without the module', async (place) => {
    const decorate = (where: string) => (where === place ? Throttle({ limit: 1 }) : () => {})
    @decorate('a class')
    @Controller('cats')
    class Cats {
      @decorate('a handler')
      @Get()
      all() {}
    }
    @Module({ controllers: [Cats] })
    class App {}
    await expect(start(App)).rejects.toMatchObject({
      code: 'WEIR_MISSING_OPTION',
      message: expect.stringMatching(/^@Throttle\(\) .* Add imports: \[ThrottleModule\.forRoot\(\{/),
    })
    @Module({ imports: [ThrottleModule.forRoot({ ...ONE, enabled: () => false })], controllers: [Cats] })
    class Unlimited {}
    expect(await statusesOf(Unlimited, '/cats', '/cats')).toEqual([200, 200])
    // A worker that shares modules with a server calls no handler.
    await (await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false })).close()
  })
})

test('options that the module does not have are rejected, with those that were meant', () => {
  expect(() => ThrottleModule.forRoot(ONE, { gard: false } as never)).toThrow(
    'Unknown option "gard". Did you mean "guard"? ThrottleModule.forRoot() has: guard.',
  )
  expect(() => ThrottleModule.forRootAsync({ useFactory: () => ONE, gard: false } as never)).toThrow('Unknown option "gard"')
})
