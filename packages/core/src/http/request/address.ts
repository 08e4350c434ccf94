import ipaddr from 'ipaddr.js'
import { copied } from '../../keys/key-text.ts'
import { Recent } from '../../keys/recent.ts'
import { invalidOption } from '../../report/errors.ts'

/**
 * The key of requests whose address is not known (a closed socket, a Unix socket) or is no address (a forged header that
 * the proxy settings trust). They share one key: a sender of garbage gains nothing by inventing more of it.
 */
export const UNKNOWN_ADDRESS = 'unknown'

/** A plain dotted quad, as nearly every IPv4 address arrives. */
const QUAD = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
/** How Node.js writes an IPv4 client of a dual-stack socket. */
const MAPPED = '::ffff:'
/** Longest text of an address, with brackets, zone and port; nothing longer is looked at. */
const LONGEST = 100

/**
 * Makes the function that turns a client's address into a key.
 *
 * - IPv4 as dotted quad, whatever its spelling; a port behind it (some gateways add one) is dropped.
 * - IPv4-mapped IPv6 as the IPv4 address that it is, by its bits.
 * - other IPv6 as its network of `subnet` bits, e.g. `2001:db8:1:2::/64`: one subscriber holds a whole network, so
 *   single addresses would mint keys. The zone is dropped.
 * - anything else as `unknown`.
 *
 * @param subnet bits of an IPv6 address that are kept, 1 to 128; default 64
 * @throws WeirError `WEIR_INVALID_OPTION` for another `subnet`
 */
export function addressKeys(subnet = 64): (address: string | undefined) => string {
  if (!Number.isInteger(subnet) || subnet < 1 || subnet > 128) throw invalidOption('ipv6Subnet', subnet, 'a whole number from 1 to 128')
  const recent = new Recent<string>(1000)
  return (address) => {
    if (address === undefined) return UNKNOWN_ADDRESS
    if (typeof address !== 'string' || address.length > LONGEST) return UNKNOWN_ADDRESS
    const known = recent.get(address)
    if (known !== undefined) return known
    const key = copied(addressKey(address, subnet))
    recent.set(address, key)
    return key
  }
}

function addressKey(address: string, subnet: number): string {
  if (QUAD.test(address)) return address
  if (address.startsWith(MAPPED) && QUAD.test(address.slice(MAPPED.length))) return address.slice(MAPPED.length)
  const parsed = parseAddress(address)
  if (parsed === undefined) return UNKNOWN_ADDRESS
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const parts = (parsed as ipaddr.IPv6).parts.map((part, index) => {
    const kept = Math.min(16, Math.max(0, subnet - index * 16))
    return part & (0xffff << (16 - kept))
  })
  return `${new ipaddr.IPv6(parts).toRFC5952String()}/${subnet}`
}

/**
 * An address in any spelling, IPv4-mapped ones unmapped, without port and zone; undefined when it is none.
 */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = /^\s*(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+|(\S+))\s*$/.exec(text)
  const host = bare?.[1] ?? bare?.[2] ?? bare?.[3]
  if (host === undefined) return undefined
  const address = host.split('%', 1)[0] as string
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined
}
