export { header } from '@weir/core'
export type { RouterLike } from './reader.ts'
export { type KoaArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
