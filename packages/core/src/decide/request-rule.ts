import { importOf, invalidOption, show, WeirError } from '../report/errors.ts'
import { isPlanMatch } from './plans.ts'
import type { PolicyOptions } from './policy.ts'
import { type AddressKey, type HeaderKey, isPathMatch, type KeyOption, type KeySource, type MatchOption } from './request-options.ts'

const KEYS =
  '"route", "ip", "all", header("name"), address(header("name")), address(a function), a function of the request, or a list of these'
const MATCHES = 'paths("POST /login", "/api/*rest"), or a function of the request'
/** A header's name as HTTP defines it (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Counts requests by a header's value, e.g. `key: header('x-api-key')`. Requests without it are counted by address.
 *
 * A client chooses its headers: unless something before Weir checks the value, combine it with a limit by address. If the value
 * is an address, use `address(header('…'))`: as a text, each address of an IPv6 client would have a limit of its own.
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
 * Counts requests by a client's address that your proxy puts into a header, or that a function returns. As with `'ip'`, all
 * spellings of an address are one key, and so is an IPv6 network of `ipv6Subnet` bits. If the header or the answer isn't
 * exactly one address, the request is counted by the address of its connection.
 *
 * Use it only for a header that clients can't set themselves: otherwise they choose their key.
 *
 * @param from `header('name')`, or a function of the request, which may be async
 * @throws WeirError `WEIR_INVALID_OPTION` for anything else
 *
 * @example
 * throttle({ key: address(header('cf-connecting-ip')), limit: 300, interval: '1m' })
 * throttle({ key: address((req) => req.get('x-client')?.split(',').at(-1)), limit: 300, interval: '1m' })
 */
export function address(from: HeaderKey): HeaderKey
export function address<Req>(from: AddressKey<Req>['address']): AddressKey<Req>
export function address<Req>(from: HeaderKey | AddressKey<Req>['address']): HeaderKey | AddressKey<Req> {
  if (typeof from === 'function') return Object.freeze({ address: from })
  if (typeof from !== 'object' || from === null || typeof from.header !== 'string') {
    throw invalidOption('address', from, 'header("name") or a function of the request, e.g. address(header("cf-connecting-ip"))')
  }
  return Object.freeze({ ...header(from.header), address: true })
}

/**
 * The sources of a key option, checked and each in its one spelling.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, naming `option`
 */
export function keySources<Req>(key: KeyOption<Req>, option: string): readonly KeySource<Req>[] {
  const list = (Array.isArray(key) ? key : [key]) as readonly KeySource<Req>[]
  if (list.length === 0) throw invalidOption(option, key, KEYS)
  return list.map((source) => {
    if (source === 'route' || source === 'ip' || source === 'all' || typeof source === 'function') return source
    if (isAddressKey(source)) return address(source.address)
    // A header key may be written as a plain object, with its name in any case.
    if (typeof source === 'object' && source !== null && typeof source.header === 'string' && TOKEN.test(source.header))
      return source.address === true ? address(source) : header(source.header)
    throw invalidOption(option, source, KEYS)
  })
}

const KEY_CHOICES = `
  key: 'ip'                  one limit for each client address
  key: header('x-api-key')   one for each value of a header: import { header } from your adapter's package, such as '@weir/express'
  key: (req) => req.user.id  one for each value that your function returns
  key: 'route'               one for each route: all clients share it
  key: 'all'                 one for all requests: all clients share it
A list combines several, such as key: ['ip', 'route'].`

/**
 * Checks that each policy has a `key`. A default key would let one client use up the limit of all others. Only for adapters, because your
 * own code passes the key to `check`.
 *
 * @param rules the options as written. A value that is no list of policies is reported elsewhere
 * @throws WeirError `WEIR_MISSING_OPTION`, with the choices
 */
export function requireKeys(rules: readonly Pick<PolicyOptions<never>, 'name' | 'key'>[]): void {
  if (!Array.isArray(rules)) return
  const at = rules.findIndex((rule) => typeof rule === 'object' && rule !== null && rule.key === undefined)
  if (at < 0) return
  const { name } = rules[at]
  const what = name !== undefined ? `Policy ${show(name)}` : rules.length > 1 ? `policies[${at}]` : 'The policy'
  throw new WeirError('WEIR_MISSING_OPTION', `${what} has no "key". Choose what requests are counted by:`, undefined, KEY_CHOICES)
}

/** Whether a key is made by `address()` of a function. */
export function isAddressKey<Req>(source: KeySource<Req>): source is AddressKey<Req> {
  return typeof source === 'object' && source !== null && typeof source.address === 'function'
}

/** The match of a rule without its plan. */
export function matchOf<Req>({ match }: Pick<PolicyOptions<Req>, 'match'>): MatchOption<Req> | undefined {
  return isPlanMatch<Req>(match) ? match.match : match
}

/**
 * Checks `key` and `match` of a rule even if no adapter reads them. The rules may get an adapter later, or be replaced under an adapter,
 * which could not continue with invalid rules.
 *
 * @param at prefix of the option's name in messages
 * @throws WeirError `WEIR_INVALID_OPTION`
 */
export function checkRequestRule(rule: Pick<PolicyOptions<never>, 'key' | 'match'>, at: string): void {
  if (rule.key !== undefined) keySources(rule.key, `${at}key`)
  const match: unknown = matchOf(rule)
  if (match === undefined || typeof match === 'function') return
  if (!isPathMatch(match)) throw invalidOption(`${at}match`, match, MATCHES, importOf('paths'))
}

/**
 * A checked rule in a normal form, which is the same for all spellings of its `key`. Later changes of the application's object have no
 * effect.
 */
export function ownRule<Req, Name extends string>(rule: PolicyOptions<Req, Name>): PolicyOptions<Req, Name> {
  if (rule.key === undefined) return Object.freeze({ ...rule })
  const sources = keySources(rule.key, 'key')
  const key = sources.length === 1 ? (sources[0] as KeySource<Req>) : Object.freeze(sources)
  return Object.freeze({ ...rule, key })
}
