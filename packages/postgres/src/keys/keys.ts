import { createHash } from 'node:crypto'

/** Longer names are replaced by their hash as the identity of a row, because an index entry has at most about 2,700 bytes. */
const LONGEST_NAME = 200

// Only printable ASCII remains. So, in a database of any encoding, no key can make a statement fail, no two keys become one, and processes
// and the server sort names in the same order. `%` starts an escape.
const ESCAPED = /[^!-$&-~]/g
const ESCAPE = /%u([0-9a-f]{4})|%([0-9a-f]{2})/g

/** Returns a caller's key or a policy's id in a form that every database can store. `unescapeText` reverses it. */
export function escapeText(text: string): string {
  return text.replace(ESCAPED, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x100 ? `%${code.toString(16).padStart(2, '0')}` : `%u${code.toString(16).padStart(4, '0')}`
  })
}

export function unescapeText(text: string): string {
  return text.replace(ESCAPE, (_, long: string | undefined, short: string | undefined) =>
    String.fromCharCode(Number.parseInt(long ?? short ?? '', 16)),
  )
}

/**
 * The identity of a row: the escaped text if it is short, otherwise a hash. No escaped text begins with `%#`, so the two kinds can't
 * collide.
 */
export function nameOf(escaped: string): string {
  return escaped.length <= LONGEST_NAME ? escaped : `%#${createHash('sha256').update(escaped).digest('base64url')}`
}

/** Returns a long text that no query searches, such as a status, as JSON in ASCII. */
export function asciiOf(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Reverses `asciiOf`. @throws for any other text */
export function textOf(ascii: string): string {
  const text: unknown = JSON.parse(ascii)
  if (typeof text !== 'string') throw new TypeError('not a text')
  return text
}
