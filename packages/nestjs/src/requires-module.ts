import { Catch, type ExceptionFilter, Inject, type OnModuleInit, Optional } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { WeirError } from '@weir/core'

/** The provider token of the module's throttler. */
export const THROTTLER = 'weir:throttler'

/** @throws WeirError `WEIR_MISSING_OPTION` where there are no limits of a module */
export function requireModule(throttler: unknown, instead: string): void {
  if (throttler !== undefined) return
  const imports = 'imports: [ThrottleModule.forRoot({ limit: 300, interval: "1m", key: "ip" })]'
  throw new WeirError('WEIR_MISSING_OPTION', `${instead}, so nothing is limited. Add ${imports} to the module of your application.`)
}

/**
 * Stops the start of a server that has limits of handlers, but no `ThrottleModule.forRoot(...)`, without which nothing reads them. A
 * filter, since Nest makes those of a handler at the start, and they cost its requests nothing.
 */
export class RequiresModule implements ExceptionFilter<never>, OnModuleInit {
  readonly #throttler: unknown
  readonly #server: HttpAdapterHost | undefined

  constructor(throttler: unknown, server: HttpAdapterHost | undefined) {
    this.#throttler = throttler
    this.#server = server
  }

  onModuleInit(): void {
    // A worker may share modules with a server, and a test may have one controller alone.
    if (this.#server?.httpAdapter)
      requireModule(this.#throttler, '@Throttle() was given limits, but ThrottleModule.forRoot(...) is not imported')
  }

  catch(): void {}
}
// By hand: the compiler that builds this package writes no decorators. Nobody throws what it catches.
Catch(RequiresModule)(RequiresModule)
Optional()(RequiresModule, undefined, 0)
Inject(THROTTLER)(RequiresModule, undefined, 0)
Optional()(RequiresModule, undefined, 1)
Inject(HttpAdapterHost)(RequiresModule, undefined, 1)
