import ipaddr from 'ipaddr.js'
import { invalidOption } from '../../report/errors.ts'
import type { Awaitable } from '../../report/user-function.ts'
import { parseAddress } from './address.ts'

/** Addresses and networks such as `'10.0.0.0/8'` or `'2001:db8::1'`, or a function of the request, which may answer later. */
export type AccessList<Req> = readonly string[] | ((request: Req) => Awaitable<boolean>)

/**
 * Makes the test of an allow or deny list: whether a request stands on it.
 *
 * Addresses are compared as numbers, whatever their spelling; an IPv4-mapped one is the IPv4 address that it is. An
 * address that is unknown or no address stands on no list. A function is returned as it is.
 *
 * @param ip reads the address of a request
 * @throws WeirError `WEIR_INVALID_OPTION`, naming `option`, for an entry that is no address or network
 */
export function accessTest<Req>(
  list: AccessList<Req>,
  option: string,
  ip: (request: Req) => string | undefined,
): (request: Req) => unknown {
  if (typeof list === 'function') return list
  const allowed = 'a list of addresses and networks such as "10.0.0.0/8" or "2001:db8::1", or a function of the request'
  if (!Array.isArray(list)) throw invalidOption(option, list, allowed)
  const networks = list.map((entry) => network(entry) ?? fail(option, entry, allowed))
  return (request) => {
    const text = ip(request)
    const address = text === undefined ? undefined : parseAddress(text)
    return address !== undefined && networks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
  }
}

function network(entry: unknown): [ipaddr.IPv4 | ipaddr.IPv6, number] | undefined {
  if (typeof entry !== 'string') return undefined
  if (entry.includes('/')) return ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : undefined
  const address = parseAddress(entry)
  return address === undefined ? undefined : [address, address.kind() === 'ipv4' ? 32 : 128]
}

function fail(option: string, entry: unknown, allowed: string): never {
  throw invalidOption(option, entry, allowed)
}
