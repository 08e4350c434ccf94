import { isVariable } from './variable-segment.ts'

/** Replaces a segment that differs from request to request. */
const PLACEHOLDER = ':id'
/** Segments of a route key. Deeper paths share one key. */
const DEEPEST = 12
/** Methods with keys of their own. Others share `OTHER`, because over HTTP/2 a method may be any word. */
const METHODS = new Set([
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'QUERY',
  'PROPFIND',
  'REPORT',
  'SEARCH',
  'PURGE',
])

/** The method that a request is counted under: `GET` for HEAD, `OTHER` for rare methods. */
export function countedMethod(method: string): string {
  if (method === 'GET' || method === 'HEAD') return 'GET'
  return METHODS.has(method) ? method : 'OTHER'
}

/**
 * The path of a request target, without query and fragment. Scheme and host are removed if a client sends them (absolute form). Always
 * starts with `/`.
 */
export function pathOf(target: string): string {
  let start = 0
  if (target.charCodeAt(0) !== 47) {
    const scheme = target.indexOf('://')
    if (scheme <= 0 || !/^[a-z][a-z0-9+.-]*$/i.test(target.slice(0, scheme))) return pathOf(`/${target}`)
    start = target.indexOf('/', scheme + 3)
    const query = target.indexOf('?', scheme + 3)
    if (start === -1 || (query !== -1 && query < start)) return '/'
  }
  for (let i = start; i < target.length; i++) {
    const code = target.charCodeAt(i)
    if (code === 63 || code === 35) return target.slice(start, i)
  }
  return start === 0 ? target : target.slice(start)
}

/**
 * Gives all spellings of a path the same text (RFC 3986, section 6.2.2): it drops repeated and trailing slashes, and applies `spell`. Never
 * throws. Dot segments are kept; see `withoutDots`.
 */
export function normalizePath(path: string, caseSensitive = false): string {
  if (!isNormal(path, caseSensitive)) {
    path = spell(path, caseSensitive).replace(/\/{2,}/g, '/')
    if (path.length > 1 && path.endsWith('/')) path = path.slice(0, -1)
  }
  return path === '' ? '/' : path
}

/**
 * Gives each character of a path one spelling. Characters that need no escape are decoded, and all others are escaped in lower case. An
 * escaped slash stays escaped, because it is no delimiter. Letters become lower case unless `caseSensitive`, because Express and Koa routes
 * ignore case. This includes letters beyond ASCII, as in `decodeURI(path).toLowerCase()`. Never throws.
 */
export function spell(path: string, caseSensitive = false): string {
  // Node.js passes the octets of a target as characters up to 255. Others occur in patterns and in paths from code.
  if (BEYOND_OCTETS.test(path)) path = path.replace(BEYOND_OCTETS_ALL, escapeText)
  const spelled = path.length <= LONGEST_SHARED ? SHARED : new Uint8Array(3 * path.length)
  const length = spellOctets(path, spelled, caseSensitive ? SPELLED : LOWER)
  const text = decoder.decode(spelled.subarray(0, length))
  return caseSensitive || !ESCAPED_LETTER.test(text) ? text : text.replace(ESCAPED_LETTERS, lowerEscaped)
}

/** Whether the path is already normal, as nearly every path is. */
function isNormal(path: string, caseSensitive: boolean): boolean {
  let before = 0
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    if (code === 47) {
      if (before === 47) return false
    } else if (
      code <= 0x20 ||
      code > 0x7a ||
      code === 37 ||
      code === 34 ||
      code === 60 ||
      code === 62 ||
      code === 92 ||
      code === 94 ||
      code === 96
    ) {
      // Above `z` only `~` is plain.
      if (code !== 0x7e) return false
    } else if (!caseSensitive && code >= 65 && code <= 90) return false
    before = code
  }
  return before !== 47 || path.length === 1
}

const BEYOND_OCTETS = /[^\0-\xff]/
const BEYOND_OCTETS_ALL = /[^\0-\xff]+/g
const ESCAPED_LETTER = /%[89a-f]/
const ESCAPED_LETTERS = /(?:%[89a-f][0-9a-f])+/g
/** Longest path that is spelled in the shared buffer. */
const LONGEST_SHARED = 1024
const SHARED = new Uint8Array(3 * LONGEST_SHARED)
const decoder = new TextDecoder('latin1')
const DIGITS = '0123456789abcdef'

/** The character that replaces an escaped octet, for each octet. 0 if it stays escaped. */
const SPELLED = new Uint8Array(256)
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@[]") {
  SPELLED[character.charCodeAt(0)] = character.charCodeAt(0)
}
/** The same in lower case. */
const LOWER = SPELLED.map((code) => (code >= 65 && code <= 90 ? code + 32 : code))
/** The value of a hexadecimal digit. 16 for any other character. */
const HEX = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = DIGITS.indexOf(String.fromCharCode(code).toLowerCase())
  return value === -1 ? 16 : value
})

/** Writes a path of octets, each in its one spelling. Returns the length. */
function spellOctets(path: string, into: Uint8Array, table: Uint8Array): number {
  let length = 0
  for (let i = 0; i < path.length; i++) {
    let octet = path.charCodeAt(i)
    if (octet === 37) {
      const high = HEX[path.charCodeAt(i + 1)] ?? 16
      const low = HEX[path.charCodeAt(i + 2)] ?? 16
      if (high > 15 || low > 15) {
        into[length++] = octet
        continue
      }
      octet = high * 16 + low
      i += 2
    } else if (octet === 47 || octet === 35 || octet === 63) {
      // Unescaped delimiters stay as they are.
      into[length++] = octet
      continue
    }
    const character = table[octet] as number
    if (character !== 0) into[length++] = character
    else {
      into[length++] = 37
      into[length++] = DIGITS.charCodeAt(octet >> 4)
      into[length++] = DIGITS.charCodeAt(octet & 15)
    }
  }
  return length
}

function escapeText(text: string): string {
  // A lone surrogate has no octets, so it is replaced.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
}

function lowerEscaped(escaped: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(escaped).toLowerCase()).toLowerCase()
  } catch {
    // Octets that are not UTF-8 have no letters.
    return escaped
  }
}

/** A normalised path with `.` and `..` segments resolved, never above the root (RFC 3986, section 5.2.4). */
export function withoutDots(path: string): string {
  if (!path.includes('/.')) return path
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(segment)
  }
  return `/${kept.join('/')}`
}

/**
 * The route that a normalised path without dot segments most likely belongs to: segments that differ from request to
 * request (numbers, UUIDs, hashes, …) become a placeholder. At most 12 segments of 64 characters.
 */
export function foldPath(path: string): string {
  let folded = ''
  let plainFrom = 0
  let depth = 0
  let start = 1
  while (start <= path.length) {
    let end = path.indexOf('/', start)
    if (end === -1) end = path.length
    if (++depth > DEEPEST) return `${folded}${path.slice(plainFrom, start)}*`
    if (isVariable(path, start, end)) {
      folded += path.slice(plainFrom, start) + PLACEHOLDER
      plainFrom = end
    }
    start = end + 1
  }
  return plainFrom === 0 ? path : folded + path.slice(plainFrom)
}

/** A path as clients send it, normalised and folded: the route that it most likely belongs to, without the method. */
export function foldRoute(path: string): string {
  return foldPath(withoutDots(normalizePath(pathOf(path))))
}
