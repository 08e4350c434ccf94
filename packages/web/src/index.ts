export * from '@weir/core'
export type { PolicyName, WeirTypes } from '@weir/core/adapter'
export { address, addresses, header, paths } from '@weir/core/http'
export {
  type AddressOf,
  forwardedAddress,
  type Limit,
  type RequestOrEvent,
  type ThrottleOptions,
  throttle,
  type WebArgs,
} from './throttle.ts'
