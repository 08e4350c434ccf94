import { BlockList } from 'node:net'
import { Recent } from '../../keys/recent.ts'
import { invalidOption } from '../../report/errors.ts'
import type { Awaitable } from '../../report/user-function.ts'
import { type Address, LONGEST_ADDRESS, parseAddress } from './address.ts'

/** Addresses and networks, made by `addresses()`. */
export interface AddressList {
  /** Whether an address, in any spelling, is on the list or in a network on it. One that is unknown or no address is on no list. */
  includes(address: string | undefined): boolean
}

/** `addresses('10.0.0.0/8', '2001:db8::1')`, or a function of the request, which may answer later. */
export type AccessList<Req> = AddressList | ((request: Req) => Awaitable<boolean>)

/**
 * A list of addresses and networks, e.g. `allow: addresses('10.0.0.0/8', '2001:db8::1')`.
 *
 * Addresses are compared as numbers, whatever their spelling; an IPv4-mapped one is the IPv4 address that it is.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for an entry that is no address or network
 */
export function addresses(...entries: readonly string[]): AddressList {
  // One for each family: a network of one holds no address of the other.
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

/** An address, or one followed by the bits of it that its network has in common. */
function networkOf(entry: unknown): (Address & { readonly bits: number }) | undefined {
  if (typeof entry !== 'string') return undefined
  const [, base = '', given] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
  const address = parseAddress(base)
  if (address === undefined) return undefined
  const most = address.family === 'ipv4' ? 32 : 128
  // A network of IPv4-mapped addresses is one of IPv4, whose bits are the last.
  const bits = given === undefined ? most : Number(given) - (address.family === 'ipv4' && base.includes(':') ? 96 : 0)
  return bits >= 0 && bits <= most ? { ...address, bits } : undefined
}
