import type { ExecutionContext } from '@nestjs/common'
import type { PlaceOptions, ThrottleInput } from '@weir/core/adapter'

/** The arguments that options such as `handler` receive. */
export type NestArgs = readonly [context: ExecutionContext]

/**
 * Options of `ThrottleModule.forRoot`. Functions receive the execution context, e.g.
 * `key: (context) => context.switchToHttp().getRequest().user?.id`.
 */
export type ThrottleOptions<Name extends string = string, Plan extends string = string> = ThrottleInput<
  ExecutionContext,
  NestArgs,
  Name,
  Plan
>

/**
 * The argument of `@Throttle`. Its limits replace the limits of the module. Without `policies`, options that it does not set come from the
 * module's single policy if they fit, except `name` and `match`.
 */
export type HandlerThrottleOptions = PlaceOptions<ExecutionContext, NestArgs>
