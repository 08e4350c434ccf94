export * from '@weir/core'
export { handlerStarts, type PolicyName, type WeirTypes } from '@weir/core/adapter'
export { address, addresses, header, paths } from '@weir/core/http'
export { type ExpressArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
