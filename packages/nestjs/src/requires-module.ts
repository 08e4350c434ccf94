import { Catch, type ExceptionFilter, Inject, type OnModuleInit, Optional } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { WeirError } from '@weir/core'

/** The provider token of the module's throttler. */
export const THROTTLER = 'weir:throttler'

/** @throws WeirError `WEIR_MISSING_OPTION` if there is no throttler of a module */
export function requireModule(throttler: unknown, instead: string): void {
  if (throttler !== undefined) return
  const imports = 'imports: [ThrottleModule.forRoot({ limit: 300, interval: "1m", key: "ip" })]'
  throw new WeirError('WEIR_MISSING_OPTION', `${instead}, so nothing is limited. Add ${imports} to the module of your application.`)
}

/**
 * Stops the start of a server that has `@Throttle()` but no `ThrottleModule.forRoot(...)`, because no guard would apply these limits. It is
 * a filter because Nest creates the filters of handlers at the start, and they cost requests nothing.
 */
export class RequiresModule implements ExceptionFilter<never>, OnModuleInit {
  readonly #throttler: unknown
  readonly #server: HttpAdapterHost | undefined

  constructor(throttler: unknown, server: HttpAdapterHost | undefined) {
    this.#throttler = throttler
    this.#server = server
  }

  onModuleInit(): void {
    // Without a server the limits may be unused: a worker may share modules with a server, and a test may load one controller alone.
    if (this.#server?.httpAdapter)
      requireModule(this.#throttler, '@Throttle() was given limits, but ThrottleModule.forRoot(...) is not imported')
  }

  catch(): void {}
}
// Calls decorators as functions, because the compiler that builds this package does not support them. The filter catches only its own
// class, which is never thrown.
Catch(RequiresModule)(RequiresModule)
Optional()(RequiresModule, undefined, 0)
Inject(THROTTLER)(RequiresModule, undefined, 0)
Optional()(RequiresModule, undefined, 1)
Inject(HttpAdapterHost)(RequiresModule, undefined, 1)
