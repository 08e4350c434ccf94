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
 * One spelling for all spellings of a path (RFC 3986, section 6.2.2): unreserved characters decoded, other escapes in
 * lower case, what must be escaped escaped, repeated and trailing slashes dropped. An escaped slash stays escaped: it is no
 * delimiter. Letters in lower case unless `caseSensitive`, since Express and Koa routes ignore case. Never throws.
 *
 * Dot segments are kept; see `withoutDots`.
 */
export function normalizePath(path: string, caseSensitive = false): string {
  if (!isNormal(path, caseSensitive)) {
    const spelled = path
      .replace(/[^\x21-\x7e]+|["<>\\^`{|}]/g, escapeText)
      .replace(/%([0-9a-f]{2})/gi, unescapeUnreserved)
      .replace(/\/{2,}/g, '/')
    path = spelled.length > 1 && spelled.endsWith('/') ? spelled.slice(0, -1) : spelled
    if (!caseSensitive) path = path.replace(/[A-Z]+/g, toLower)
  }
  return path === '' ? '/' : path
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
    if (code <= 0xff) escaped += `%${code.toString(16).padStart(2, '0')}`
    else escaped += code >= 0xd800 && code <= 0xdfff ? '%ef%bf%bd' : encodeURIComponent(character).toLowerCase()
  }
  return escaped
}

function unescapeUnreserved(escaped: string, hex: string): string {
  const code = Number.parseInt(hex, 16)
  const unreserved =
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 48 && code <= 57) ||
    code === 45 ||
    code === 46 ||
    code === 95 ||
    code === 126
  return unreserved ? String.fromCharCode(code) : escaped.toLowerCase()
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
