import type { KeySource } from '../../decide/request-options.ts'
import { bounded, LONGEST_KEY } from '../../keys/key-text.ts'

/** Whether a client can vary a key at will: it looks like a URL with its query, or is a very long text. */
export function isRaw(value: string): boolean {
  return value.length > LONGEST_KEY || (value.includes('?') && /^(?:[a-z]+:\/)?\//i.test(value))
}

/** The usual names of headers in which proxies and CDNs write the address of a client. */
const ADDRESS_HEADER = /-(?:(?:client|socket)?ip(?:v6)?|forwarded-for|viewer-address)$/

/** The first of a key's headers with an address that `address()` doesn't read. */
export function addressHeaderIn<Req>(sources: readonly KeySource<Req>[]): string | undefined {
  for (const source of sources) {
    if (typeof source === 'object' && 'header' in source && source.address !== true && ADDRESS_HEADER.test(source.header))
      return source.header
  }
  return undefined
}

/** Marks an address that replaces a missing key, so that no user named like an address shares it. */
const STAND_IN = '\u0001'

/** The key of a request whose own key could not be made. */
export function standIn(address: string): string {
  return STAND_IN + address
}

/** A value as a key, which is never equal to a replacement. */
export function own(value: string): string {
  return bounded(value.charCodeAt(0) === 1 ? STAND_IN + value : value)
}

/** One part of a combined key, in which `|` ends a part. Two different lists never make the same key. */
export function part(value: string): string {
  return value.includes('|') || value.includes('\\') ? value.replace(/[|\\]/g, '\\$&') : value
}
