import type { PathMatch } from '../../decide/request-options.ts'
import { idOfPatterns, PathIndex } from './path-index.ts'

const index = () => new PathIndex()

/**
 * Limits a policy to requests by their path, e.g. `match: paths('POST /login', '/api/*rest')`: those that any of the patterns
 * matches. A pattern is a path in the syntax of path-to-regexp 8, as in Express 5, with a method before it if wanted.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for a pattern that can't be compiled, or when there is none
 *
 * @example
 * throttle({ key: 'ip', limit: 10, interval: '1m', match: paths('POST /login') })
 */
export function paths(...patterns: readonly string[]): PathMatch {
  index().add(patterns, 0)
  return Object.freeze({ patterns: Object.freeze([...patterns]), id: idOfPatterns(patterns), index })
}
