import { parseUrl } from './parse-url.ts'

/** The longest path that is read in every way; see `readings`. Reading takes time that grows with the length. */
export const LONGEST_READ: number = 1024

/** A host, perhaps with a user before it, as no two parsers read them differently. */
const AUTHORITY = String.raw`:\/\/(?:[\w.~%:-]*@)?(?:[\w.-]+|\[[\da-f:.]+\])(?::\d*)?(?=\/)`
/** Text that parsers take for an origin: any scheme except those with paths of their own, or without hosts. */
const ORIGIN = new RegExp(`^(?!javascript:|file:)[a-z][\\w.+-]*${AUTHORITY}`, 'i')
/** The same for `url.parse` of Node.js, by which Express and Koa go. */
const LEGACY_ORIGIN = new RegExp(`^(?!javascript:)[a-z][\\w.+-]*${AUTHORITY}`, 'i')
/** Escapes that become delimiters where a router decodes a whole path before it takes it apart: tab, line break, `#%/;?\`. */
const ESCAPED_DELIMITER = /%(?:0[9ad]|2[35f]|3[bf]|5c)/i
/** Characters that the legacy `url.parse` of Node.js drops at both ends. With HTTP/2, targets may contain any of them. */
const SPACE = '\t\n\f\r \u00a0\ufeff'
/** A URL parser that knows the base `http://host` takes what follows for a host. */
const NETWORK_PATH = /^[\0- ]*[/\\][\t\n\r]*[/\\]/
const DOT_LIKE = /\/(?:\.|%2e)/i

/** The paths that a target may be taken for. Still escaped, with doubled slashes and dots as they stand. */
export type Readings = ReadonlySet<string>

/**
 * The paths that any router might take a target for. They disagree:
 *
 * | router | what it does to the target |
 * |---|---|
 * | by hand | compares strings, cut at `?`, perhaps at `#`, perhaps decoded first |
 * | Express, Koa (`parseurl`) | cuts at `#`, and then (or where it sees white space) takes `\` for `/` and trims white space |
 * | WHATWG `URL` | takes `\` for `/`, resolves dots, drops tabs, takes `//host/path` for `/path` |
 * | Fastify 4 | cuts at `;` too, decodes |
 *
 * @param target without its query
 * @returns undefined when the target is no path, or one so odd or long that nobody can tell what a router makes of it
 */
export function anyReadings(target: string): Readings | undefined {
  if (target.length > LONGEST_READ) return undefined
  const path = target === '*' ? '/*' : target.replace(ORIGIN, '')
  if (path.charCodeAt(0) !== 47) return undefined
  const all = new Set<string>()
  read(path, all)
  // As text behind a host it leaves no path.
  if (target === '*') all.add('/')
  for (const one of [...all]) if (ESCAPED_DELIMITER.test(one)) read(one.replace(/%([\da-f]{2})/gi, character), all)
  return all
}

/** With one of these in a target, or without a slash at its begin, `parseurl` reads it by `url.parse`. */
const PARSED = /^[^/]|[\t\n\f\r #\u00a0\ufeff]/

/**
 * The path that a router which reads targets by `parseurl`, as those of Express and Koa do, takes one for.
 *
 * @param target without its query
 * @param whole with its query, which has a say in how the path is read
 * @returns as `anyReadings`
 */
export function parseurlReadings(target: string, whole: string = target): Readings | undefined {
  if (target.length > LONGEST_READ) return undefined
  const path = target === '*' ? '/*' : target.replace(LEGACY_ORIGIN, '')
  if (path.charCodeAt(0) !== 47) return undefined
  return new Set([PARSED.test(whole) ? legacy(path) : path])
}

function read(path: string, found: Set<string>): void {
  const structures = new Set([path, before(before(path, '#'), '?'), legacy(before(path, '?'))])
  // Only then the parser comes to anything new.
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
