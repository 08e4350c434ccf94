import { invalidOption } from '@weir/core/adapter'
import type { Context } from 'hono'
import { connectionOf } from './connection.ts'

/** How the address of a client is found; undefined when it is unknown. */
export type AddressOf = (c: Context) => string | undefined

/** More proxies in a row than anybody has. */
const MOST_PROXIES = 100

/** The address of the other end of the connection: the client's, or that of the last proxy. */
export const socketAddress: AddressOf = (c) => connectionOf(c).incoming?.socket?.remoteAddress

/**
 * Finds the address of clients behind proxies of yours, each of which adds to `X-Forwarded-For` whom it was called by:
 * `address: forwardedAddress(1)`. What stands further to the left was written by the client, and is not believed.
 *
 * @param proxies how many of your proxies a request passes on its way here, 1 to 100. Were there fewer, clients could choose their address
 * @throws WeirError `WEIR_INVALID_OPTION`
 */
export function forwardedAddress(proxies: number): AddressOf {
  if (!Number.isInteger(proxies) || proxies < 1 || proxies > MOST_PROXIES) {
    throw invalidOption('forwardedAddress', proxies, `the number of your proxies, from 1 to ${MOST_PROXIES}`)
  }
  return (c) => {
    const listed = c.req.header('x-forwarded-for')
    if (listed === undefined || listed === '') return socketAddress(c)
    // From the end: a client may have sent a list as long as the server takes.
    let end = listed.length
    for (let passed = 1; passed < proxies; passed++) {
      const comma = listed.lastIndexOf(',', end - 1)
      if (comma <= 0) break
      end = comma
    }
    return listed.slice(listed.lastIndexOf(',', end - 1) + 1, end).trim()
  }
}
