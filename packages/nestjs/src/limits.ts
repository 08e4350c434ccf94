import type { ExecutionContext, OnApplicationShutdown, OnModuleInit, Type } from '@nestjs/common'
import { MetadataScanner, type ModulesContainer, Reflector } from '@nestjs/core'
import { type AnyPolicyOptions, type Throttler, WeirError } from '@weir/core'
import { type Guard, PlaceLimits } from '@weir/core/adapter'
import { LIMITS } from './decorators.ts'
import type { HandlerThrottleOptions, NestArgs, ThrottleOptions } from './options.ts'
import { nestReader } from './reader.ts'

type Limits = HandlerThrottleOptions | false | null | undefined
type NestGuard = Guard<ExecutionContext, NestArgs>

/** The limits of the module, and the limits that decorators set for classes and handlers. */
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

  /** Whether any limit that is known before the application starts uses slots (`concurrency()`), or reserves units (`estimate`). */
  get needHandlerEnd(): boolean {
    const given = [...this.#decorated()].map(([limits]) => limits as Partial<Record<string, unknown>>)
    if (this.#places.general.reserves || given.some(({ estimate }) => estimate !== undefined)) return true
    const rules = given.flatMap(({ policies, throttler, ...one }) => (throttler as Throttler | undefined)?.policies ?? policies ?? [one])
    return [...this.throttler.policies, ...(rules as AnyPolicyOptions[])].some(({ algorithm }) => algorithm?.slots !== undefined)
  }

  /** Checks the options of all decorators, and starts the throttler. */
  onModuleInit(): void {
    for (const [limits, name] of this.#decorated()) this.#note(limits, name)
    this.#places.start()
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#places.general.owned) await this.throttler.close()
  }

  /** The guard of a handler, or false if it is not limited. */
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

  /** The limits of decorated classes and handlers. */
  *#decorated(): Generator<[limits: HandlerThrottleOptions, name: string]> {
    const scanner = new MetadataScanner()
    for (const module of this.#modules.values()) {
      for (const { metatype } of [...module.controllers.values(), ...module.providers.values()]) {
        if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || metatype.prototype === null) continue
        const { prototype, name } = metatype
        const places: [object, string][] = scanner.getAllMethodNames(prototype).map((method) => [prototype[method], `${name}.${method}`])
        for (const [place, named] of [[metatype, name] as const, ...places]) {
          const limits = this.#reflector.get<Limits>(LIMITS, place as Type<unknown>)
          if (limits) yield [limits, named]
        }
      }
    }
  }

  #note(limits: HandlerThrottleOptions, name: string): void {
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
      // The module was loaded later, which is too late to fail the start, so the module's own limits apply.
      general.report(name, `@Throttle of ${name}`, error)
      return general
    }
  }
}
