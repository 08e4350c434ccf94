import 'reflect-metadata'
import type { Server } from 'node:http'
import {
  Catch,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  type HttpException,
  Module,
  type Provider,
} from '@nestjs/common'
import { APP_FILTER, APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import {
  SkipThrottle as TheirSkip,
  Throttle as TheirThrottle,
  ThrottlerException,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
  type ThrottlerOptions,
  ThrottlerStorageService,
} from '@nestjs/throttler'
import { memoryStore, SkipThrottle, Throttle, ThrottledException, ThrottleModule, type ThrottleOptions } from '@weir/nestjs'
import { type Answer, as, type Case, field, times } from './beside.ts'

/** Calls decorators directly, because the build of the tests does not compile them. */
function on(target: object, method: string, ...decorators: readonly (MethodDecorator & ((...args: never[]) => unknown))[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, method) as PropertyDescriptor
  for (const decorate of decorators) decorate(target, method, descriptor)
}

/** Decorators of the handlers of `/login` and of `/health`. */
interface Decorated {
  readonly login?: MethodDecorator
  readonly health?: MethodDecorator
}

async function app(module: DynamicModule, { login, health }: Decorated, providers: Provider[] = []): Promise<Server> {
  class Pages {
    hello(): string {
      return 'hello'
    }
    login(): string {
      return 'login'
    }
    health(): string {
      return 'health'
    }
  }
  on(Pages.prototype, 'hello', Get())
  on(Pages.prototype, 'login', Get('login'), ...(login === undefined ? [] : [login]))
  on(Pages.prototype, 'health', Get('health'), ...(health === undefined ? [] : [health]))
  Controller()(Pages)
  class App {}
  Module({ imports: [module], controllers: [Pages], providers })(App)
  const made = await NestFactory.create<NestExpressApplication>(App, new ExpressAdapter(), { logger: false })
  made.set('trust proxy', 1)
  await made.init()
  return made.getHttpServer() as Server
}

const GUARD: Provider = { provide: APP_GUARD, useClass: ThrottlerGuard }

/** A filter that answers with an exception's status. */
function filter(type: typeof ThrottlerException | typeof ThrottledException): Provider {
  class Filter {
    catch(
      exception: HttpException,
      host: { switchToHttp(): { getResponse(): { status(code: number): { send(body: string): void } } } },
    ): void {
      host.switchToHttp().getResponse().status(exception.getStatus()).send('too many')
    }
  }
  Catch(type as never)(Filter)
  return { provide: APP_FILTER, useClass: Filter }
}

const LIMIT = { ttl: 60_000, limit: 2 } as const
const peer = (options: ThrottlerModuleOptions | Partial<ThrottlerOptions>, decorated: Decorated = {}, ...providers: Provider[]) =>
  app(ThrottlerModule.forRoot(Array.isArray(options) || 'throttlers' in options ? options : [{ ...LIMIT, ...options }]), decorated, [
    GUARD,
    ...providers,
  ])
const weir = (options: Partial<ThrottleOptions> = {}, decorated: Decorated = {}, ...providers: Provider[]) =>
  app(
    ThrottleModule.forRoot({ limit: 2, interval: '1m', key: ['ip', 'route'], store: memoryStore(), ...options } as ThrottleOptions),
    decorated,
    providers,
  )

const headerOf = (context: ExecutionContext, name: string): string =>
  String(context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers[name] ?? '')
const ANN = as('x-user', 'ann')

export const CASES: readonly Case[] = [
  {
    options: ['ThrottlerModule.forRoot', 'ttl', 'limit', 'generateKey'],
    peer: () => peer({}),
    weir: () => weir(),
    // Each handler counts separately.
    requests: [...times(3), ...times(3, { path: '/login' })],
    statuses: [200, 200, 429, 200, 200, 429],
  },
  {
    options: ['throttlers', 'name'],
    peer: () =>
      peer({
        throttlers: [
          { ...LIMIT, name: 'burst', limit: 3 },
          { name: 'long', ttl: 3_600_000, limit: 2 },
        ],
      }),
    weir: () =>
      app(
        ThrottleModule.forRoot({
          policies: [
            { name: 'burst', limit: 3, interval: '1m', key: ['ip', 'route'] },
            { name: 'long', limit: 2, interval: '1h', key: ['ip', 'route'] },
          ],
          store: memoryStore(),
        }),
        {},
      ),
    requests: times(3),
    statuses: [200, 200, 429],
  },
  {
    options: ['limit: a function'],
    peer: () => peer({ limit: (context) => (headerOf(context, 'x-user') === 'ann' ? 3 : 1) }),
    weir: () =>
      weir({ limit: (context: ExecutionContext) => (headerOf(context, 'x-user') === 'ann' ? 3 : 1), fallbackLimit: 1, key: 'all' }),
    requests: times(4, ANN),
    statuses: [200, 200, 200, 429],
  },
  {
    options: ['blockDuration'],
    peer: () => peer({ blockDuration: 3_600_000 }),
    weir: () => weir({ cooldown: '1h' }),
    requests: times(4),
    same: field('Retry-After'),
    statuses: [200, 200, 429, 429],
  },
  {
    options: ['ignoreUserAgents'],
    peer: () => peer({ ignoreUserAgents: [/bot/] }),
    weir: () => weir({ skip: (context: ExecutionContext) => /bot/.test(headerOf(context, 'user-agent')) }),
    requests: [...times(4, as('user-agent', 'a bot')), ...times(3)],
    statuses: [200, 200, 200, 200, 200, 200, 429],
  },
  {
    options: ['skipIf'],
    peer: () => peer({ skipIf: (context) => headerOf(context, 'x-user') === 'root' }),
    weir: () => weir({ skip: (context: ExecutionContext) => headerOf(context, 'x-user') === 'root' }),
    requests: times(4, as('x-user', 'root')),
    statuses: [200, 200, 200, 200],
  },
  {
    options: ['@SkipThrottle'],
    peer: () => peer({}, { health: TheirSkip() }),
    weir: () => weir({}, { health: SkipThrottle() }),
    requests: times(4, { path: '/health' }),
    statuses: [200, 200, 200, 200],
  },
  {
    options: ['@Throttle'],
    peer: () => peer({}, { login: TheirThrottle({ default: { limit: 1, ttl: 60_000 } }) }),
    weir: () => weir({}, { login: Throttle({ limit: 1, interval: '1m' }) }),
    requests: [...times(2, { path: '/login' }), ...times(3)],
    statuses: [200, 429, 200, 200, 429],
  },
  {
    options: ['getTracker'],
    peer: () => peer({ getTracker: (request) => String((request['headers'] as Record<string, string>)['x-user']) }),
    weir: () => weir({ key: [(context: ExecutionContext) => headerOf(context, 'x-user'), 'route'] }),
    requests: [...times(3, ANN), as('x-user', 'bob')],
    statuses: [200, 200, 429, 200],
  },
  {
    options: ['storage'],
    peer: () => peer({ throttlers: [LIMIT], storage: new ThrottlerStorageService() }),
    weir: () => weir({ store: memoryStore() }),
    requests: times(3),
    statuses: [200, 200, 429],
  },
  {
    options: ['setHeaders: true'],
    peer: () => peer({}),
    weir: () => weir({ headers: 'legacy' }),
    requests: times(2),
    same: field('X-RateLimit-Limit', 'X-RateLimit-Remaining'),
    statuses: [200, 200],
  },
  {
    options: ['setHeaders'],
    peer: () => peer({ setHeaders: false }),
    weir: () => weir({ headers: false }),
    requests: times(2),
    same: field('X-RateLimit-Limit', 'RateLimit', 'RateLimit-Policy'),
    statuses: [200, 200],
  },
  {
    options: ['errorMessage'],
    peer: () => peer({ throttlers: [LIMIT], errorMessage: 'slow down' }),
    weir: () => weir({ message: { statusCode: 429, message: 'slow down' } }),
    requests: times(3),
    same: ({ status, body }: Answer) => status === 429 && JSON.parse(body),
    statuses: [200, 200, 429],
  },
  {
    options: ['ipv6SubnetPrefix'],
    peer: () => peer({ throttlers: [LIMIT], ipv6SubnetPrefix: 64 }),
    weir: () => weir({ ipv6Subnet: 64 }),
    requests: [1, 2, 3].map((end) => as('x-forwarded-for', `2001:db8::${end}`)).concat(as('x-forwarded-for', '2001:db8:0:1::1')),
    statuses: [200, 200, 429, 200],
  },
  {
    options: ['ThrottlerException'],
    peer: () => peer({}, {}, filter(ThrottlerException)),
    weir: () => weir({ throwOnReject: true }, {}, filter(ThrottledException)),
    requests: times(3),
    same: ({ body }) => body,
    statuses: [200, 200, 429],
  },
]
