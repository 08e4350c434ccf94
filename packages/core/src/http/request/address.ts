import { isIP } from 'node:net'
import { copied } from '../../keys/key-text.ts'
import { Recent } from '../../keys/recent.ts'
import { invalidOption } from '../../report/errors.ts'
import { parseUrl } from './parse-url.ts'

/**
 * The key of requests with an unknown address (a closed socket, a Unix socket) or an invalid one (a forged header that the proxy settings
 * trust). They share one key, so a client gains nothing by inventing more invalid addresses.
 */
export const UNKNOWN_ADDRESS = 'unknown'

/** A plain dotted quad, the form of nearly every IPv4 address. */
const QUAD = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
/** The prefix with which Node.js writes an IPv4 client of a dual-stack socket. */
const MAPPED = '::ffff:'
/** Longest text of an address, with brackets, zone and port. Longer texts are not read. */
export const LONGEST_ADDRESS = 100

/**
 * Makes the function that turns a client's address into a key.
 *
 * - IPv4 becomes a dotted quad, whatever its spelling. A port after it, which some gateways add, is dropped (see `bareAddress`).
 * - IPv6 that carries an IPv4 client (IPv4-mapped, NAT64, SIIT, Teredo) becomes that IPv4 address. Otherwise all such clients would share
 *   one network and one key.
 * - Other IPv6 becomes its network of `subnet` bits, e.g. `2001:db8:1:2::/64`. One subscriber has a whole network, so single addresses
 *   would give it any number of keys. The zone is dropped. A 6to4 client has 48 bits (RFC 3056), so no more are kept.
 * - Link-local addresses (`fe80::/10`) and addresses of a network's own NAT64 (`64:ff9b:1::/48`) stay whole, because all hosts of a link,
 *   and all clients of a translator, share their first 64 bits.
 * - Any other text becomes `unknown`.
 *
 * @param subnet bits of an IPv6 address that are kept, 1 to 128; default 64
 * @throws WeirError `WEIR_INVALID_OPTION` for another `subnet`
 */
export function addressKeys(subnet = 64): (address: string | undefined) => string {
  if (!Number.isInteger(subnet) || subnet < 1 || subnet > 128) throw invalidOption('ipv6Subnet', subnet, 'a whole number from 1 to 128')
  const recent = new Recent<string>(1000)
  return (address) => {
    if (address === undefined) return UNKNOWN_ADDRESS
    if (typeof address !== 'string' || address.length > LONGEST_ADDRESS) return UNKNOWN_ADDRESS
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
  if (parsed.family === 'ipv4') return parsed.text
  const groups = groupsOf(parsed.text)
  const carried = carriedIPv4(groups)
  if (carried !== undefined) return carried
  const network = bitsOfClient(groups, subnet)
  const kept = groups.map((group, place) => {
    const bits = Math.min(16, Math.max(0, network - place * 16))
    return (group & (0xffff << (16 - bits))).toString(16)
  })
  return `${canonicalIPv6(kept.join(':'))}/${network}`
}

/** Prefixes of 96 bits before an IPv4 address, as `groupsOf` splits them: SIIT (RFC 2765) and NAT64 (RFC 6052). */
const TRANSLATED: ReadonlySet<string> = new Set(['0,0,0,0,65535,0', '100,65435,0,0,0,0'])

/** The IPv4 address of the client that a gateway has translated to IPv6. Undefined for a client of IPv6. */
function carriedIPv4(groups: readonly number[]): string | undefined {
  const [high, low] = groups.slice(6) as [number, number]
  if (TRANSLATED.has(groups.slice(0, 6).join())) return quadOf(high, low)
  // Teredo (RFC 4380) inverts the client's bits.
  return groups[0] === 0x2001 && groups[1] === 0 ? quadOf(high ^ 0xffff, low ^ 0xffff) : undefined
}

/** Bits of an IPv6 address that belong to one client. */
function bitsOfClient(groups: readonly number[], subnet: number): number {
  const [first = 0] = groups
  if ((first & 0xffc0) === LINK_LOCAL || groups.slice(0, 3).join() === LOCAL_NAT64) return 128
  return first === SIX_TO_FOUR ? Math.min(subnet, 48) : subnet
}

const LINK_LOCAL = 0xfe80
const SIX_TO_FOUR = 0x2002
/** A network's own NAT64 (RFC 8215). The IPv4 address may be at five places in the rest, but each client has one address. */
const LOCAL_NAT64 = '100,65435,1'

/** An address in its canonical spelling. */
export interface Address {
  readonly family: 'ipv4' | 'ipv6'
  /** A dotted quad, or IPv6 as in RFC 5952. */
  readonly text: string
}

/** Parses an address in any spelling, without port and zone. IPv4-mapped addresses become IPv4. Undefined if the text is no address. */
export function parseAddress(text: string): Address | undefined {
  const host = bareAddress(text)
  return host === undefined ? undefined : parseHost(host)
}

/**
 * The address in a text, in its own spelling, without brackets, port and zone. IPv6 may have a port without brackets, as CloudFront writes
 * it: `2001:db8::1:46532`. If the whole text is an address, its last group counts as a part of it, not as a port.
 *
 * @returns undefined for several words; any other result may still be no address
 */
export function bareAddress(text: string): string | undefined {
  const bare = /^\s*(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+|(\S+))\s*$/.exec(text)
  const host = (bare?.[1] ?? bare?.[2] ?? bare?.[3])?.split('%', 1)[0]
  if (host === undefined || isIP(host) !== 0) return host
  const [, address = '', port = ''] = /^(.*):(\d{1,5})$/.exec(host) ?? []
  return isIP(address) === 6 && Number(port) > 0 && Number(port) <= LAST_PORT ? address : host
}

const LAST_PORT = 65_535

function parseHost(host: string): Address | undefined {
  switch (isIP(host)) {
    case 4:
      return { family: 'ipv4', text: host }
    case 6: {
      const text = canonicalIPv6(host)
      const groups = groupsOf(text)
      const mapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)
      return mapped ? { family: 'ipv4', text: quadOf(groups[6] as number, groups[7] as number) } : { family: 'ipv6', text }
    }
    default:
      return oldIPv4(host)
  }
}

/** Parses IPv4 by the rules of `inet_aton`, like URLs: octal and hexadecimal parts, and fewer than four of them. */
function oldIPv4(host: string): Address | undefined {
  const hostname = /^[\da-fx.]*[\da-fx]$/i.test(host) ? (parseUrl(`http://${host}`)?.hostname ?? '') : ''
  return isIP(hostname) === 4 ? { family: 'ipv4', text: hostname } : undefined
}

/** An IPv6 address in lower case without its longest row of zeros (RFC 5952), as URLs spell it. */
function canonicalIPv6(address: string): string {
  // The URLs of Bun can't end with every dotted quad.
  const hexadecimal = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...quad: string[]) => {
    const [first = 0, second = 0, third = 0, fourth = 0] = quad.slice(0, 4).map(Number)
    return `${((first << 8) | second).toString(16)}:${((third << 8) | fourth).toString(16)}`
  })
  return new URL(`http://[${hexadecimal}]`).hostname.slice(1, -1)
}

/** The eight groups of an address that `canonicalIPv6` returned. */
function groupsOf(address: string): number[] {
  const [head = '', tail = ''] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === '' ? [] : tail.split(':')
  const zeros = new Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16))
}

function quadOf(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
