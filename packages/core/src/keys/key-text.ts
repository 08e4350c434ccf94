import { createHash } from 'node:crypto'

/** The longest key that is kept unchanged, in UTF-16 code units. See `bounded`. */
export const LONGEST_KEY: number = 256
/** Separates a long key's beginning from its hash. */
const MARK = '~sha256:'
/** Characters of a SHA-256 in base64url. */
const HASH = 43
const BOUNDED = new RegExp(`^[^]{${LONGEST_KEY + 1 - MARK.length - HASH}}${MARK}[\\w-]{${HASH}}$`)

/**
 * Bounds the length of a key. A key of more than 256 characters becomes its beginning, `~sha256:`, and a SHA-256 of the whole key in
 * base64url. The result has 257 characters, so no key that is kept unchanged looks like it.
 */
export function bounded(key: string): string {
  if (key.length <= LONGEST_KEY) return key
  const hash = createHash('sha256')
  if (isWellFormed(key)) hash.update(key, 'utf8')
  // Lone surrogates have no UTF-8 form, so they would all have one hash. No UTF-8 begins with this octet.
  else hash.update(Uint8Array.of(0xff)).update(key, 'utf16le')
  return key.slice(0, LONGEST_KEY + 1 - MARK.length - HASH) + MARK + hash.digest('base64url')
}

/** As `bounded`, but keeps a key that already has the bounded form, as decisions, events and snapshots show it. */
export function boundedOnce(key: string): string {
  return key.length <= LONGEST_KEY || (key.length === LONGEST_KEY + 1 && BOUNDED.test(key)) ? key : bounded(key)
}

function isWellFormed(text: string): boolean {
  // The method is from ES2024. Node.js 20 has it.
  return (text as string & { isWellFormed(): boolean }).isWellFormed()
}

/** V8 copies shorter strings. Longer ones refer to the strings that they were cut out of or put together from. */
const SHORTEST_SLICE = 13
const scratch = Buffer.allocUnsafeSlow(2 * 512)

/**
 * Copies a text into its own memory. Strings that outlive their request must be copied: V8 keeps a string that was cut out of a longer one
 * as a reference to it, so a key of 20 characters can keep a header of 16 KB in memory. A round trip through a buffer always makes a copy
 * of the smallest size, and takes 200 to 250 ns.
 */
export function copied(text: string): string {
  if (text.length < SHORTEST_SLICE) return text
  if (2 * text.length > scratch.length) return Buffer.from(text, 'utf16le').toString('utf16le')
  return scratch.toString('utf16le', 0, scratch.write(text, 'utf16le'))
}
