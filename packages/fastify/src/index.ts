export * from '@weir/core'
export type { PolicyName, WeirTypes } from '@weir/core/adapter'
export { address, addresses, header, paths } from '@weir/core/http'
export type {
  FastifyArgs,
  NamedThrottleOptions,
  RouteThrottleOptions,
  ThrottleFactory,
  ThrottleFunction,
  ThrottleHook,
  ThrottleOptions,
} from './options.ts'
export { weir as default, weir } from './plugin.ts'
