import type { PathMatch } from '../../decide/request-options.ts'
import { idOfPatterns, PathIndex } from './path-index.ts'

const index = () => new PathIndex()

/**
 * Limits a policy to requests whose path matches one of the patterns, e.g. `match: paths('POST /login', '/api/*rest')`. A pattern is a path
 * in the syntax of path-to-regexp 8, as in Express 5, with an optional method before it.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for a pattern that can't be compiled, or if there is none
 *
 * @example
 * throttle({ key: 'ip', limit: 10, interval: '1m', match: paths('POST /login') })
 */
export function paths(...patterns: readonly string[]): PathMatch {
  index().add(patterns, 0)
  return Object.freeze({ patterns: Object.freeze([...patterns]), id: idOfPatterns(patterns), index })
}
