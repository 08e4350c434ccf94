import { invalidOption } from '@weir/core/adapter'
import type { Context } from 'hono'
import { connectionOf } from './connection.ts'

/** Returns the address of a request's client, or undefined if it is unknown. */
export type AddressOf = (c: Context) => string | undefined

/** A bound that no real chain of proxies reaches. */
const MOST_PROXIES = 100

/** The address of the other end of the connection: the client or the last proxy. */
export const socketAddress: AddressOf = (c) => connectionOf(c).incoming?.socket?.remoteAddress

/**
 * Finds the address of clients behind your own proxies: `address: forwardedAddress(1)`. Each proxy appends the address that called it to
 * `X-Forwarded-For`. Addresses further to the left come from the client and are ignored.
 *
 * @param proxies the number of your proxies that each request passes, a whole number from 1 to 100. If requests pass fewer, clients can
 * choose their address
 * @throws WeirError `WEIR_INVALID_OPTION` for any other value
 */
export function forwardedAddress(proxies: number): AddressOf {
  if (!Number.isInteger(proxies) || proxies < 1 || proxies > MOST_PROXIES) {
    throw invalidOption('forwardedAddress', proxies, `the number of your proxies, from 1 to ${MOST_PROXIES}`)
  }
  return (c) => {
    const listed = c.req.header('x-forwarded-for')
    if (listed === undefined || listed === '') return socketAddress(c)
    // Reads from the end, because a client may send a list as long as the server accepts.
    let end = listed.length
    for (let passed = 1; passed < proxies; passed++) {
      const comma = listed.lastIndexOf(',', end - 1)
      if (comma <= 0) break
      end = comma
    }
    return listed.slice(listed.lastIndexOf(',', end - 1) + 1, end).trim()
  }
}
