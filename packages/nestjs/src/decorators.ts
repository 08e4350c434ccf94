import { applyDecorators, type CustomDecorator, createParamDecorator, Inject, SetMetadata, UseFilters } from '@nestjs/common'
import { invalidOption } from '@weir/core/adapter'
import { decisionOf } from './decisions.ts'
import type { HandlerThrottleOptions } from './options.ts'
import { RequiresModule, THROTTLER } from './requires-module.ts'

/** Where the limits of a class or handler are kept: options, false for none, or null for those of the module. */
export const LIMITS = 'weir:limits'

/**
 * Limits of a class or handler in place of the module's. One decorator is one limit: on a class, its handlers share it. The
 * decorator that stands nearest to the handler holds. Options are checked when the application starts. A server without
 * `ThrottleModule.forRoot(...)` does not start.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for anything but an object
 *
 * @example
 * \@Throttle({ limit: 5, interval: '1m' })
 * \@Post('login')
 * login() {}
 */
export function Throttle(options: HandlerThrottleOptions): MethodDecorator & ClassDecorator {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('@Throttle()', options, 'limits such as { limit: 5 }', 'For a handler without limits use @SkipThrottle().')
  }
  return applyDecorators(SetMetadata(LIMITS, options), UseFilters(RequiresModule))
}

/** Leaves a class or handler unlimited. `@SkipThrottle(false)` on a handler of such a class lets the module's limits hold. */
export function SkipThrottle(skip = true): CustomDecorator<string> {
  return SetMetadata(LIMITS, skip ? false : null)
}

/** A parameter of an HTTP handler: the decision about its request, or undefined when it passed uncounted. */
export const ThrottleDecision: () => ParameterDecorator = createParamDecorator((_data: unknown, context) => decisionOf(context))

/** A parameter of a constructor: the throttler behind the module, e.g. to `reset` or `block` a key. */
export const InjectThrottler = (): PropertyDecorator & ParameterDecorator => Inject(THROTTLER)
