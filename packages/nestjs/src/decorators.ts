import { applyDecorators, type CustomDecorator, createParamDecorator, Inject, SetMetadata, UseFilters } from '@nestjs/common'
import { invalidOption } from '@weir/core/adapter'
import { decisionOf } from './decisions.ts'
import type { HandlerThrottleOptions } from './options.ts'
import { RequiresModule, THROTTLER } from './requires-module.ts'

/** The metadata key for the limits of a class or handler: options, false for none, or null for the limits of the module. */
export const LIMITS = 'weir:limits'

/**
 * Replaces the module's limits for a class or handler. The handlers of a decorated class share its limit. A decorator of a handler takes
 * precedence over the decorator of its class. Options are checked when the application starts. A server without
 * `ThrottleModule.forRoot(...)` does not start.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for any value that is not an object
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

/** Removes all limits from a class or handler. `@SkipThrottle(false)` on a handler of such a class applies the module's limits again. */
export function SkipThrottle(skip = true): CustomDecorator<string> {
  return SetMetadata(LIMITS, skip ? false : null)
}

/** Decorates a parameter of an HTTP handler: the decision about its request, or undefined if it passed uncounted. */
export const ThrottleDecision: () => ParameterDecorator = createParamDecorator((_data: unknown, context) => decisionOf(context))

/** Decorates a parameter of a constructor: the throttler behind the module, e.g. to `reset` or `block` a key. */
export const InjectThrottler = (): PropertyDecorator & ParameterDecorator => Inject(THROTTLER)
