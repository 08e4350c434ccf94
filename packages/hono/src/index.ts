export * from '@weir/core'
export { address, addresses, header, type PolicyName, paths, type WeirTypes } from '@weir/core/http'
export { type AddressOf, forwardedAddress } from './address.ts'
export { type HonoArgs, type ThrottleMiddleware, type ThrottleOptions, throttle } from './throttle.ts'
