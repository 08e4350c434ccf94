export { fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
export { header, type PolicyName, type WeirTypes } from '@weir/core/http'
export { type ExpressArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
