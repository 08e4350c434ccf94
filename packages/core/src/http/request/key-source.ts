import type { HeaderKey, KeyOption, KeySource } from '../../decide/request-options.ts'
import { bounded, LONGEST_KEY } from '../../keys/key-text.ts'
import { invalidOption } from '../../report/errors.ts'

const ALLOWED = '"route", "ip", "all", header("name"), address(header("name")), a function of the request, or a list of these'
/** A header's name as HTTP defines it (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Counts requests by a header's value, e.g. `key: header('x-api-key')`. Requests without it are counted by address.
 *
 * A client chooses its headers: unless something before Weir checks the value, combine it with a limit by address.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` when `name` is no header name
 *
 * @example
 * throttle({ policies: [
 *   { name: 'customer', key: header('x-api-key'), limit: 600, interval: '1m' },
 *   { name: 'address', key: 'ip', limit: 1200, interval: '1m' },
 * ] })
 */
export function header(name: string): HeaderKey {
  if (typeof name !== 'string' || !TOKEN.test(name)) throw invalidOption('header', name, 'the name of a header, such as "x-api-key"')
  return Object.freeze({ header: name.toLowerCase() })
}

/**
 * Counts requests by the client's address in a header that your proxy sets, e.g. `key: address(header('cf-connecting-ip'))`.
 * As with `'ip'`, all spellings of an address are one key, and so is an IPv6 network of `ipv6Subnet` bits. Requests whose
 * header is absent or no single address are counted by the address of their connection.
 *
 * Use it only for a header that clients can't set themselves: otherwise they choose their key.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` when `from` is not made by `header()`
 */
export function address(from: HeaderKey): HeaderKey {
  if (typeof from !== 'object' || from === null || typeof from.header !== 'string') {
    throw invalidOption('address', from, 'header("name"), e.g. address(header("cf-connecting-ip"))')
  }
  return Object.freeze({ ...header(from.header), address: true })
}

/**
 * The sources of a key option, checked.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, naming `option`
 */
export function keySources<Req>(key: KeyOption<Req> | undefined, option: string): readonly KeySource<Req>[] {
  if (key === undefined) return ['route']
  const list = (Array.isArray(key) ? key : [key]) as readonly KeySource<Req>[]
  if (list.length === 0) throw invalidOption(option, key, ALLOWED)
  return list.map((source) => {
    if (source === 'route' || source === 'ip' || source === 'all' || typeof source === 'function') return source
    // Looked up here again, since a header key may be written as a plain object.
    if (typeof source === 'object' && source !== null && typeof source.header === 'string') {
      return source.address === true ? address(source) : header(source.header)
    }
    throw invalidOption(option, source, ALLOWED)
  })
}

/** Whether a key looks like something that its sender can vary at will: a URL with its query, or a very long text. */
export function isRaw(value: string): boolean {
  return value.length > LONGEST_KEY || (value.includes('?') && /^(?:[a-z]+:\/)?\//i.test(value))
}

/** Marks the address that stands in for a key that could not be made, so that no user named like an address shares it. */
const STAND_IN = '\u0001'

/** The key of a request whose own key could not be made. */
export function standIn(address: string): string {
  return STAND_IN + address
}

/** A value as a key of its own: never taken for a stand-in. */
export function own(value: string): string {
  return bounded(value.charCodeAt(0) === 1 ? STAND_IN + value : value)
}

/** One part of a combined key, in which `|` ends a part: two different lists never give the same key. */
export function part(value: string): string {
  return value.includes('|') || value.includes('\\') ? value.replace(/[|\\]/g, '\\$&') : value
}
