import { BlockList } from 'node:net'
import { Recent } from '../../keys/recent.ts'
import { invalidOption } from '../../report/errors.ts'
import type { Awaitable } from '../../report/user-function.ts'
import { type Address, LONGEST_ADDRESS, parseAddress } from './address.ts'

/** A list of addresses and networks, made by `addresses()`. */
export interface AddressList {
  /** Returns whether an address, in any spelling, is on the list or in one of its networks. An unknown or invalid address is on no list. */
  includes(address: string | undefined): boolean
}

/** Chooses clients: `addresses('10.0.0.0/8', '2001:db8::1')`, or a function of the request that returns `true` or `false`, or a promise. */
export type AccessList<Req> = AddressList | ((request: Req) => Awaitable<boolean>)

/**
 * Makes a list of addresses and networks, e.g. `allow: addresses('10.0.0.0/8', '2001:db8::1')`.
 *
 * Addresses are compared as numbers, whatever their spelling. An IPv4-mapped address equals its IPv4 address.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for an entry that is no address or network
 */
export function addresses(...entries: readonly string[]): AddressList {
  // There is one list for each family, because a network contains only addresses of its own family.
  const listed: Record<Address['family'], BlockList> = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const entry of entries) {
    const network = networkOf(entry)
    if (network === undefined) {
      throw invalidOption('addresses', entry, 'an address or network such as "10.0.0.0/8" or "2001:db8::1"')
    }
    listed[network.family].addSubnet(network.text, network.bits, network.family)
  }
  const recent = new Recent<boolean>(1000)
  return Object.freeze({
    includes: (text: string | undefined): boolean => {
      if (typeof text !== 'string' || text.length > LONGEST_ADDRESS) return false
      const known = recent.get(text)
      if (known !== undefined) return known
      const address = parseAddress(text)
      const stands = address !== undefined && listed[address.family].check(address.text, address.family)
      recent.set(text, stands)
      return stands
    },
  })
}

/** An address, and the number of leading bits that all addresses of its network share. A single address shares all bits. */
function networkOf(entry: unknown): (Address & { readonly bits: number }) | undefined {
  if (typeof entry !== 'string') return undefined
  const [, base = '', given] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
  const address = parseAddress(base)
  if (address === undefined) return undefined
  const most = address.family === 'ipv4' ? 32 : 128
  // A network of IPv4-mapped addresses is an IPv4 network, whose prefix is 96 bits shorter.
  const bits = given === undefined ? most : Number(given) - (address.family === 'ipv4' && base.includes(':') ? 96 : 0)
  return bits >= 0 && bits <= most ? { ...address, bits } : undefined
}
