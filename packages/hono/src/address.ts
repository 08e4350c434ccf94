import { addressBy, lastForwarded } from '@weir/web/adapter'
import type { Context } from 'hono'
import { platformIn } from './platform.ts'

/** Returns the address of a request's client, or undefined if it is unknown. */
export type AddressOf = (c: Context) => string | undefined

/** The address of the client as the server reports it: the other end of the connection, or the address that the platform found. */
export const reportedAddress: AddressOf = (c) => addressBy(platformIn(c), c.req.raw)

/**
 * Finds the address of clients behind your own proxies: `address: forwardedAddress(1)`. Each proxy appends the address that called it to
 * `X-Forwarded-For`. Addresses further to the left come from the client and are ignored.
 *
 * @param proxies the number of your proxies that each request passes, a whole number from 1 to 100. If requests pass fewer, clients can
 * choose their address
 * @throws WeirError `WEIR_INVALID_OPTION` for any other value
 */
export function forwardedAddress(proxies: number): AddressOf {
  const last = lastForwarded(proxies)
  return (c) => {
    const listed = c.req.header('x-forwarded-for')
    return listed ? last(listed) : reportedAddress(c)
  }
}
