import { isVariable } from './variable-segment.ts'

/** Stands for a segment that differs from request to request. */
const PLACEHOLDER = ':id'
/** Segments of a route key; what lies deeper shares one key. */
const DEEPEST = 12
/** Methods that make keys of their own; others share `OTHER`, since over HTTP/2 a method may be any word. */
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

/** The method that a request is counted under: HEAD as GET, rare ones together. */
export function countedMethod(method: string): string {
  if (method === 'GET' || method === 'HEAD') return 'GET'
  return METHODS.has(method) ? method : 'OTHER'
}

/**
 * The path of a request target: without query and fragment, and without scheme and host where a client sends them
 * (absolute form). Always starts with `/`.
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
 * One spelling for all spellings of a path (RFC 3986, section 6.2.2): repeated and trailing slashes dropped, and what
 * `spell` does. Never throws. Dot segments are kept; see `withoutDots`.
 */
export function normalizePath(path: string, caseSensitive = false): string {
  if (!isNormal(path, caseSensitive)) {
    path = spell(path, caseSensitive).replace(/\/{2,}/g, '/')
    if (path.length > 1 && path.endsWith('/')) path = path.slice(0, -1)
  }
  return path === '' ? '/' : path
}

/**
 * One spelling for each character of a path: characters that need no escape decoded, other escapes in lower case, what must be
 * escaped escaped. An escaped slash stays escaped: it is no delimiter. Letters in lower case unless `caseSensitive`, since Express
 * and Koa routes ignore case; those beyond ASCII too, as `decodeURI(path).toLowerCase()` would make them. Never throws.
 */
export function spell(path: string, caseSensitive = false): string {
  const spelled = path.replace(/[^\x21-\x7e]+|["<>\\^`{|}]+/g, escapeText).replace(/%([0-9a-f]{2})/gi, unescapePlain)
  return caseSensitive ? spelled : spelled.replace(/[A-Z]+/g, toLower).replace(/(?:%[89a-f][0-9a-f])+/g, lowerEscaped)
}

/** Whether nothing needs to be done, as for nearly every path. */
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

function escapeText(text: string): string {
  let escaped = ''
  for (const character of text) {
    const code = character.codePointAt(0) as number
    // Node.js hands over the octets of a target as characters up to 255. A lone surrogate has no octets; it gets a stand-in.
    if (code <= 0xff) escaped += ESCAPED[code]
    else escaped += code >= 0xd800 && code <= 0xdfff ? '%ef%bf%bd' : encodeURIComponent(character).toLowerCase()
  }
  return escaped
}

const ESCAPED: readonly string[] = Array.from({ length: 256 }, (_, code) => `%${code.toString(16).padStart(2, '0')}`)

/** What the octet of each escape is written as: itself, where no router or parser could take it for anything else. */
const UNESCAPED: readonly string[] = Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code)
  return /[\w.~!$&'()*+,;=:@[\]-]/.test(character) ? character : (ESCAPED[code] as string)
})

function unescapePlain(_escaped: string, hex: string): string {
  return UNESCAPED[Number.parseInt(hex, 16)] as string
}

function lowerEscaped(escaped: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(escaped).toLowerCase()).toLowerCase()
  } catch {
    // Not UTF-8: there are no letters.
    return escaped
  }
}

function toLower(text: string): string {
  return text.toLowerCase()
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
