import type { ExecutionContext, OnApplicationShutdown, OnModuleInit, Type } from '@nestjs/common'
import { MetadataScanner, type ModulesContainer, Reflector } from '@nestjs/core'
import { type Throttler, WeirError } from '@weir/core'
import { type Guard, PlaceLimits } from '@weir/core/http'
import { LIMITS } from './decorators.ts'
import type { HandlerThrottleOptions, NestArgs, ThrottleOptions } from './options.ts'
import { nestReader } from './reader.ts'

type Limits = HandlerThrottleOptions | false | null | undefined
type NestGuard = Guard<ExecutionContext, NestArgs>

/** The limits of the module, and those that decorators give to classes and handlers. */
export class ThrottleLimits implements OnModuleInit, OnApplicationShutdown {
  readonly #places: PlaceLimits<ExecutionContext, NestArgs>
  readonly #modules: ModulesContainer
  readonly #reflector = new Reflector()
  readonly #guards = new WeakMap<object, WeakMap<object, NestGuard | false>>()

  /** @throws WeirError for options that can't be used */
  constructor(options: ThrottleOptions, modules: ModulesContainer) {
    this.#places = new PlaceLimits(options, nestReader, {
      place: 'Handler',
      whole: 'the module',
      none: 'A handler without limits has @SkipThrottle().',
    })
    this.#modules = modules
  }

  get throttler(): Throttler<string, ExecutionContext> {
    return this.#places.throttler
  }

  /** Checks what all decorators were given, and connects. */
  onModuleInit(): void {
    const scanner = new MetadataScanner()
    for (const module of this.#modules.values()) {
      for (const { metatype } of [...module.controllers.values(), ...module.providers.values()]) {
        if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || metatype.prototype === null) continue
        this.#note(metatype, metatype.name)
        for (const method of scanner.getAllMethodNames(metatype.prototype)) {
          this.#note(metatype.prototype[method], `${metatype.name}.${method}`)
        }
      }
    }
    this.#places.start()
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#places.general.owned) await this.throttler.close()
  }

  /** The guard of a handler; false when it is not limited. */
  guardOf(context: ExecutionContext): NestGuard | false {
    const handler = context.getHandler()
    const owner = context.getClass()
    let guards = this.#guards.get(handler)
    if (guards === undefined) this.#guards.set(handler, (guards = new WeakMap()))
    let guard = guards.get(owner)
    if (guard === undefined) guards.set(owner, (guard = this.#find(handler, owner)))
    this.#places.follow()
    return guard
  }

  #note(target: object, name: string): void {
    const limits = this.#reflector.get<Limits>(LIMITS, target as Type<unknown>)
    if (limits === undefined || limits === null || limits === false) return
    try {
      this.#places.add(limits, name)
    } catch (error) {
      if (error instanceof WeirError) error.message = `@Throttle of ${name}: ${error.message}`
      throw error
    }
  }

  #find(handler: ReturnType<ExecutionContext['getHandler']>, owner: Type<unknown>): NestGuard | false {
    const own = this.#reflector.get<Limits>(LIMITS, handler)
    const limits = own === undefined ? this.#reflector.get<Limits>(LIMITS, owner) : own
    const { general } = this.#places
    if (limits === false) return false
    if (limits === undefined || limits === null) return general
    const name = own === undefined ? owner.name : `${owner.name}.${handler.name}`
    try {
      return this.#places.guard(this.#places.add(limits, name))
    } catch (error) {
      // Of a module that was loaded later: too late to refuse the start, and the module's own limits hold.
      general.report(name, `@Throttle of ${name}`, error)
      return general
    }
  }
}
