export * from '@weir/core'
export { address, addresses, header, type PolicyName, paths, type WeirTypes } from '@weir/core/http'
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
