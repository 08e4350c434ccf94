export { header } from '@weir/core'
export { type ExpressArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
