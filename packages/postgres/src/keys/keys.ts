import { createHash } from 'node:crypto'

/** Names longer than this are replaced by their hash where they identify a row: an index entry has room for about 2,700 bytes. */
const LONGEST_NAME = 200

// Only printable ASCII gets through: whatever the encoding of the database is, no key can make a statement fail, no two keys
// become one, and the order of names is the same at nodes and server. `%` introduces what is escaped.
const ESCAPED = /[^!-$&-~]/g
const ESCAPE = /%u([0-9a-f]{4})|%([0-9a-f]{2})/g

/** A caller's key, or a policy's id, in a form that survives any database. `unescapeText` gives it back. */
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

/** A long text that nobody looks for, such as a status: JSON of nothing but ASCII. */
export function asciiOf(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Gives a text of `asciiOf` back. @throws for anything else */
export function textOf(ascii: string): string {
  const text: unknown = JSON.parse(ascii)
  if (typeof text !== 'string') throw new TypeError('not a text')
  return text
}
