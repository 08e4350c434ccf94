export * from '@weir/core'
export { address, addresses, header, type PolicyName, paths, type WeirTypes } from '@weir/core/http'
export type { RouterLike } from './reader.ts'
export { type KoaArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
