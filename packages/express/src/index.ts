export * from '@weir/core'
export { address, addresses, handlerStarts, header, type PolicyName, paths, type WeirTypes } from '@weir/core/http'
export { type ExpressArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
