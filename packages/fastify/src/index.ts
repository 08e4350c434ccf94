export { fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
export { header, type PolicyName, type WeirTypes } from '@weir/core/http'
export type { FastifyArgs, RouteThrottleOptions, ThrottleHook, ThrottleOptions } from './options.ts'
export { weir as default, weir } from './plugin.ts'
