const LONGEST_NAME = 64

/**
 * Whether the part of a path from `start` to `end` looks like a value rather than the name of a resource:
 *
 * | kind | examples |
 * |---|---|
 * | digits, with punctuation | `42`, `2024-01-31`, `59.33,18.07` |
 * | hexadecimal, 8 or more with a digit, or 16 or more | UUIDs, object ids, hashes |
 * | a word and a number of 3 or more digits | `user-1234`, `order_98765` |
 * | letters and digits mixed in a long word | ULIDs, nano ids, `cus_NffrFeUfNV2Hib` |
 * | one of these with a file extension | `98765.json`, `app.3f2a9c1b7d.js` |
 * | contains an `@` | `jane@example.org`, `@jane` |
 * | longer than 64 characters | tokens |
 *
 * It makes one pass over character codes, without allocation, because it runs once for each path that was not seen lately.
 */
export function isVariable(path: string, start: number, end: number): boolean {
  if (end - start > LONGEST_NAME) return true
  end = withoutExtension(path, start, end)
  const length = end - start
  if (length === 0) return false
  let digits = 0
  let hexLetters = 0
  let letters = 0
  let dashes = 0
  let trailingDigits = 0
  let changes = 0
  let kindBefore = 0
  for (let i = start; i < end; i++) {
    const code = path.charCodeAt(i)
    let kind = 3
    if (code >= 48 && code <= 57) {
      digits++
      trailingDigits++
      kind = 1
    } else {
      const lower = code | 32
      if (code === 64) return true
      if (lower >= 97 && lower <= 122) {
        kind = 2
        letters++
        if (lower <= 102) hexLetters++
      } else if (code === 45) dashes++
      trailingDigits = 0
    }
    // The number of alternations between digits and letters distinguishes a random word from `v2` or `oauth2`.
    if (kind !== 3 && kindBefore !== 0 && kind !== kindBefore) changes++
    if (kind !== 3) kindBefore = kind
  }
  if (digits > 0 && letters === 0) return true
  if (digits === 0) return letters === hexLetters && hexLetters + dashes === length && hexLetters >= 16
  const hexadecimal = letters === hexLetters && digits + hexLetters + dashes === length
  if (hexadecimal && digits + hexLetters >= 8) return true
  if (digits >= 3 && trailingDigits === digits && length > digits && isSeparator(path.charCodeAt(end - trailingDigits - 1))) return true
  if (digits >= 3 && changes >= 3 && length >= 12) return true
  return length >= 16 && (changes >= 3 || (changes >= 2 && dashes === 0))
}

/** The end of a segment without its extension: a dot and up to five letters. */
function withoutExtension(path: string, start: number, end: number): number {
  for (let i = end - 1; i > start && end - i <= 6; i--) {
    const code = path.charCodeAt(i)
    if (code === 46) return i
    if ((code | 32) < 97 || (code | 32) > 122) return end
  }
  return end
}

function isSeparator(code: number): boolean {
  return code === 45 || code === 46 || code === 58 || code === 95
}
