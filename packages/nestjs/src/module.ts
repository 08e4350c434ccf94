import { type DynamicModule, Inject, type ModuleMetadata, type OnModuleInit, Optional, type Provider } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, ModulesContainer } from '@nestjs/core'
import { checkOptions } from '@weir/core/adapter'
import { ThrottleFilter } from './filter.ts'
import { ThrottleGuard } from './guard.ts'
import { HandlerEndInterceptor } from './handler-end.ts'
import { ThrottleLimits } from './limits.ts'
import type { ThrottleOptions } from './options.ts'
import { requireModule, THROTTLER } from './requires-module.ts'

/** Options of the module itself, in addition to its limits. */
export interface ThrottleModuleExtras {
  /**
   * Limits every handler. With `false` only handlers with `@UseGuards(ThrottleGuard)`, for example behind your own guard:
   * `@UseGuards(AuthGuard, ThrottleGuard)`.
   *
   * @default true
   */
  readonly guard?: boolean
}

/** Options of `forRootAsync`, for options that depend on other providers, e.g. a configuration service. */
export interface ThrottleAsyncOptions extends ThrottleModuleExtras, Pick<ModuleMetadata, 'imports'> {
  /**
   * Lists the providers that `useFactory` is called with.
   *
   * @default none
   */
  readonly inject?: readonly unknown[]
  /** Returns the options of `forRoot`, at once or as a promise. */
  // biome-ignore lint/suspicious/noExplicitAny: the types of what is injected are the application's
  readonly useFactory: (...injected: any[]) => ThrottleOptions | Promise<ThrottleOptions>
}

const OPTIONS = 'weir:options'

/**
 * Limits the requests of an application of NestJS 11 and 12, over Express or Fastify.
 *
 * @example
 * \@Module({ imports: [ThrottleModule.forRoot({ limit: 300, interval: '1m', key: 'ip', store: redisStore(new Redis()) })] })
 * class AppModule {}
 */
export class ThrottleModule implements OnModuleInit {
  readonly #throttler: unknown

  constructor(throttler?: unknown) {
    this.#throttler = throttler
  }

  /** @throws WeirError `WEIR_MISSING_OPTION` if the module was imported without `forRoot` or `forRootAsync` */
  onModuleInit(): void {
    requireModule(this.#throttler, 'ThrottleModule was imported without forRoot(...)')
  }

  /**
   * Makes the module from options.
   *
   * @param options `{ key, limit, interval, ... }` for one policy, `{ policies, ... }`, `{ throttler, ... }`, or a throttler
   * @param extras options of the module itself
   * @throws WeirError when the application starts, for options that can't be used: its `code` and message name the option
   */
  static forRoot<const Name extends string = string, const Plan extends string = never>(
    options: ThrottleOptions<Name, Plan>,
    extras: ThrottleModuleExtras = {},
  ): DynamicModule {
    return dynamic([{ provide: OPTIONS, useValue: options }], extras)
  }

  /** Makes the module like `forRoot`, from options that a function of other providers returns. */
  static forRootAsync({ imports = [], inject = [], useFactory, ...extras }: ThrottleAsyncOptions): DynamicModule {
    return { ...dynamic([{ provide: OPTIONS, useFactory, inject: [...inject] as never[] }], extras), imports }
  }
}

// Calls decorators as functions, because the compiler that builds this package does not support them.
Optional()(ThrottleModule, undefined, 0)
Inject(THROTTLER)(ThrottleModule, undefined, 0)

function dynamic(options: Provider[], extras: ThrottleModuleExtras): DynamicModule {
  checkOptions('ThrottleModule.forRoot', extras, ['guard'], 'an object such as { guard: false } as second argument')
  const { guard = true } = extras
  const providers: Provider[] = [
    ...options,
    {
      provide: ThrottleLimits,
      useFactory: (given: ThrottleOptions, modules: ModulesContainer) => new ThrottleLimits(given, modules),
      inject: [OPTIONS, ModulesContainer],
    },
    { provide: THROTTLER, useFactory: ({ throttler }: ThrottleLimits) => throttler, inject: [ThrottleLimits] },
    { provide: APP_FILTER, useClass: ThrottleFilter },
    {
      provide: APP_INTERCEPTOR,
      // Nest calls an interceptor in about 5 µs, so only applications that need one get it.
      useFactory: (limits: ThrottleLimits) => (limits.needHandlerEnd ? new HandlerEndInterceptor() : undefined),
      inject: [ThrottleLimits],
    },
    ThrottleGuard,
  ]
  if (guard) providers.push({ provide: APP_GUARD, useExisting: ThrottleGuard })
  return { module: ThrottleModule, global: true, providers, exports: [ThrottleGuard, ThrottleLimits, THROTTLER] }
}
