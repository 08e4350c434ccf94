import { parseUrl } from './parse-url.ts'

/** The longest path that is read in every way (see `anyReadings`), because the time for it grows with the length. */
export const LONGEST_READ: number = 1024

/** A host, with an optional user before it, of characters that all parsers read alike. */
const AUTHORITY = String.raw`:\/\/(?:[\w.~%:-]*@)?(?:[\w.-]+|\[[\da-f:.]+\])(?::\d*)?(?=\/)`
/** Text that parsers read as an origin: any scheme except schemes with special paths or without hosts. */
const ORIGIN = new RegExp(`^(?!javascript:|file:)[a-z][\\w.+-]*${AUTHORITY}`, 'i')
/** The same for `url.parse` of Node.js, which Express and Koa use. */
const LEGACY_ORIGIN = new RegExp(`^(?!javascript:)[a-z][\\w.+-]*${AUTHORITY}`, 'i')
/** Escapes that become delimiters if a router decodes the whole path before it splits it: tab, line break, `#%/;?\`. */
const ESCAPED_DELIMITER = /%(?:0[9ad]|2[35f]|3[bf]|5c)/i
/** Characters that the legacy `url.parse` of Node.js drops at both ends. With HTTP/2, targets may contain any of them. */
const SPACE = '\t\n\f\r \u00a0\ufeff'
/** A URL parser with the base `http://host` reads the text after this as a host. */
const NETWORK_PATH = /^[\0- ]*[/\\][\t\n\r]*[/\\]/
const DOT_LIKE = /\/(?:\.|%2e)/i

/** The paths that a router may read in a target. They are still escaped, and keep doubled slashes and dots. */
export type Readings = ReadonlySet<string>

/**
 * The paths that any router may read in a target. Routers disagree:
 *
 * | router | effect on the target |
 * |---|---|
 * | your own code | compares strings, cut at `?`, perhaps at `#`, perhaps decoded first |
 * | Express, Koa (`parseurl`) | cuts at `#`, and then (or if there is white space) reads `\` as `/` and trims white space |
 * | WHATWG `URL` | reads `\` as `/`, resolves dots, drops tabs, reads `//host/path` as `/path` |
 * | Fastify 4 | cuts at `;` too, decodes |
 *
 * @param target without its query
 * @returns undefined if the target is no path, or is too odd or too long to predict how a router reads it
 */
export function anyReadings(target: string): Readings | undefined {
  if (target.length > LONGEST_READ) return undefined
  const path = target === '*' ? '/*' : target.replace(ORIGIN, '')
  if (path.charCodeAt(0) !== 47) return undefined
  const all = new Set<string>()
  read(path, all)
  // Appended to a host, `*` leaves no path.
  if (target === '*') all.add('/')
  for (const one of [...all]) if (ESCAPED_DELIMITER.test(one)) read(one.replace(/%([\da-f]{2})/gi, character), all)
  return all
}

/** `parseurl` uses `url.parse` for a target with one of these characters, or without a slash at its start. */
const PARSED = /^[^/]|[\t\n\f\r #\u00a0\ufeff]/

/**
 * The path that a router reads in a target if it uses `parseurl`, as Express and Koa do.
 *
 * @param target without its query
 * @param whole with its query, which affects how the path is read
 * @returns the same as `anyReadings`
 */
export function parseurlReadings(target: string, whole: string = target): Readings | undefined {
  if (target.length > LONGEST_READ) return undefined
  const path = target === '*' ? '/*' : target.replace(LEGACY_ORIGIN, '')
  if (path.charCodeAt(0) !== 47) return undefined
  return new Set([PARSED.test(whole) ? legacy(path) : path])
}

function read(path: string, found: Set<string>): void {
  const structures = new Set([path, before(before(path, '#'), '?'), legacy(before(path, '?'))])
  // Without these, the parser finds nothing new.
  if (path.includes('\\') || /[\t\n\r]/.test(path) || DOT_LIKE.test(path)) add(structures, whatwg(`http://host${path}`))
  if (NETWORK_PATH.test(path)) add(structures, whatwg(path, 'http://host'))
  for (const structure of structures) {
    found.add(structure)
    add(found, before(structure, ';'))
  }
}

function add(found: Set<string>, path: string | undefined): void {
  if (path !== undefined && path.charCodeAt(0) === 47) found.add(path)
}

function before(path: string, delimiter: string): string {
  const end = path.indexOf(delimiter)
  return end === -1 ? path : path.slice(0, end)
}

function legacy(path: string): string {
  let end = path.length
  while (SPACE.includes(path[end - 1] as string)) end--
  return before(path.slice(0, end).replaceAll('\\', '/'), '#')
}

function whatwg(target: string, base?: string): string | undefined {
  return parseUrl(target, base)?.pathname
}

function character(_escaped: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}
