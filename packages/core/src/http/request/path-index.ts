import { parse, pathToRegexp, type Token } from 'path-to-regexp'
import type { PathPolicies } from '../../decide/request-options.ts'
import { invalidOption } from '../../report/errors.ts'
import { anyReadings } from './readings.ts'
import { countedMethod, normalizePath, spell, withoutDots } from './route-key.ts'

const ALLOWED = 'a path such as "/api/users/:id" or "/api/*rest" (path-to-regexp 8), with a method before it if wanted: "POST /login"'

/** One pattern of a policy's `match`. */
interface Pattern {
  /** Undefined for every method. */
  readonly method: string | undefined
  readonly regexp: RegExp
  /** Whether it contains a wildcard. Express 4 and others let a wildcard match nothing: `/files/` matches `/files/*rest`. */
  readonly open: boolean
  /** The index of the policy. */
  readonly policy: number
}

/** A node of the tree of leading segments. */
interface Node {
  readonly patterns: Pattern[]
  readonly literal: Map<string, Node>
  /** The child for a segment that is one parameter. */
  any: Node | undefined
}

/**
 * Finds the policies whose path patterns match a request, without trying them all. Patterns are in a tree by their leading segments. Only
 * the patterns on the path's way through the tree are tried.
 *
 * ```text
 *   POST /api/users/:id/orders      (root) ── api ── users ── (any) ── orders   tried for /api/users/7/orders
 *   /api/*rest                                 └ tried for everything under /api
 * ```
 */
export class PathIndex implements PathPolicies {
  readonly #root: Node = node()
  readonly #all: Pattern[] = []

  /**
   * @param patterns each `'/path'` or `'METHOD /path'`
   * @throws WeirError `WEIR_INVALID_OPTION` for `paths`, if a pattern can't be compiled or there is none
   */
  add(patterns: readonly string[], policy: number): void {
    if (patterns.length === 0) throw invalidOption('paths', patterns, `at least one pattern: ${ALLOWED}`)
    for (const pattern of patterns) this.#add(pattern, policy)
  }

  #add(pattern: string, policy: number): void {
    const { method, path } = parseMethod(pattern)
    try {
      this.#place(path, method, policy, spelledLiteral)
      // Over HTTP/2 a router may receive, and match, the octet of this letter in Latin-1.
      if (/[\x80-\xff]/.test(path)) this.#place(path, method, policy, (text) => text)
    } catch (error) {
      throw invalidOption('paths', pattern, ALLOWED, `${(error as Error).message}.`)
    }
  }

  #place(path: string, method: string | undefined, policy: number, encodePath: (text: string) => string): void {
    const data = parse(path, { encodePath })
    const { regexp, keys } = pathToRegexp(data)
    const pattern = { method, regexp, policy, open: keys.some(({ type }) => type === 'wildcard') }
    place(this.#root, data.tokens).patterns.push(pattern)
    this.#all.push(pattern)
  }

  find(method: string, target: string, plain: boolean, own: Iterable<string>, samples: Iterable<string>, found: Set<number>): void {
    const forms = new Set<string>()
    // The path is tried as it is, because patterns ignore case, and adding a long path to a Set is slower than all the rest.
    if (plain) this.match(method, target, found)
    else {
      const all = anyReadings(target)
      // Any pattern may match a target that can't be read.
      if (all === undefined) this.#findAll(method, found)
      else for (const path of all) addForms(path, forms)
      for (const path of own) addForms(path, forms)
    }
    for (const sample of samples) addForms(sample, forms)
    for (const form of forms) this.match(method, form, found)
  }

  /** Adds to `found` the policies with a pattern that matches a path. The path is tried as it is. */
  match(method: string, path: string, found: Set<number>): void {
    const ends = path.endsWith('/')
    for (const { method: wanted, regexp, policy, open } of this.candidates(path)) {
      if (wanted !== undefined && wanted !== method) continue
      if (regexp.test(path) || (open && ends && regexp.test(`${path}x`))) found.add(policy)
    }
  }

  /** Adds to `found` all policies with a pattern for the method. */
  #findAll(method: string, found: Set<number>): void {
    for (const { method: wanted, policy } of this.#all) if (wanted === undefined || wanted === method) found.add(policy)
  }

  /** The patterns on a path's way through the tree. */
  candidates(path: string): readonly Pattern[] {
    const found: Pattern[] = []
    search(this.#root, path, 1, found)
    return found
  }
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
function parseMethod(pattern: string): { readonly method: string | undefined; readonly path: string } {
  const parts = typeof pattern === 'string' ? /^(?:([A-Z]+)\s+)?(\/\S*)$/.exec(pattern) : null
  if (parts === null) throw invalidOption('paths', pattern, ALLOWED)
  const method = parts[1] === undefined ? undefined : countedMethod(parts[1])
  if (method === 'OTHER') throw invalidOption('paths', pattern, ALLOWED, `Weir doesn't support the method ${parts[1]}.`)
  return { method, path: parts[2] as string }
}

/**
 * Equal for lists of patterns that match the same requests, in any order. It contains the method and the parts of each pattern, without the
 * names of parameters.
 */
export function idOfPatterns(patterns: readonly string[]): string {
  const shapes = patterns.map((pattern) => {
    const { method, path } = parseMethod(pattern)
    return JSON.stringify([method, shapeOf(parse(path, { encodePath: spelledLiteral }).tokens)])
  })
  return [...new Set(shapes)].toSorted().join('\n')
}

function shapeOf(tokens: readonly Token[]): unknown[] {
  return tokens.map((token) => (token.type === 'text' ? token.value : token.type === 'group' ? shapeOf(token.tokens) : { [token.type]: 1 }))
}

function node(): Node {
  return { patterns: [], literal: new Map(), any: undefined }
}

/** The text of a pattern, spelled like a path. A slash at either end stays, because it belongs to the neighbouring parts. */
export function spelledLiteral(text: string): string {
  return spell(encodeURI(text).replace(/%25([0-9a-f]{2})/gi, '%$1')).replace(/\/{2,}/g, '/')
}

/** Adds to `forms` the spellings in which a path from a client is tried. */
export function addForms(path: string, forms: Set<string>): void {
  const spelled = spell(path)
  forms.add(withoutDots(normalizePath(spelled)))
  // Most routers don't resolve dots and doubled slashes. A wildcard route serves such paths as they are.
  forms.add(spelled)
  // Some routers merge slashes, but leave dots and a slash at the end.
  forms.add(spelled.replace(/\/{2,}/g, '/'))
  // Some routers match before they decode: an escaped `-` does not separate the parameters of `/:from-:to`.
  if (/[%\x80-\xff]/.test(path)) forms.add(path.toLowerCase())
}

/** The node of a pattern's leading segments, as far as each is plain text or one parameter. */
function place(root: Node, tokens: readonly Token[]): Node {
  let at = root
  let segment = ''
  let parameter = false
  const step = () => {
    if (parameter) {
      at.any ??= node()
      at = at.any
    } else if (segment !== '') {
      const name = segment.toLowerCase()
      let next = at.literal.get(name)
      if (next === undefined) {
        next = node()
        at.literal.set(name, next)
      }
      at = next
    }
    segment = ''
    parameter = false
  }
  for (const token of tokens) {
    if (token.type === 'param' && segment === '') parameter = true
    else if (token.type === 'text') {
      const pieces = token.value.split('/')
      // Text directly after a parameter makes a mixed segment, which the tree can't contain, so the way ends before it.
      if (parameter && pieces[0] !== '') return at
      for (let i = 0; i < pieces.length; i++) {
        if (i > 0) step()
        segment += pieces[i]
      }
    } else return at
  }
  step()
  return at
}

function search(at: Node, path: string, from: number, found: Pattern[]): void {
  found.push(...at.patterns)
  if (from > path.length) return
  let end = path.indexOf('/', from)
  if (end === -1) end = path.length
  if (at.literal.size > 0) {
    const next = at.literal.get(path.slice(from, end).toLowerCase())
    if (next !== undefined) search(next, path, end + 1, found)
  }
  if (at.any !== undefined) search(at.any, path, end + 1, found)
}
