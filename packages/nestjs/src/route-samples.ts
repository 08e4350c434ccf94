/** Stands for the value of a parameter. No pattern contains this text. */
const VALUE = '%01'

/**
 * Paths that stand for all that reach a route of Express (path-to-regexp 8) or Fastify: `/users/%01` for `/users/:id`. A wildcard
 * is two segments, since a policy that matches one only does not cover it; an optional part is there and not there.
 */
export function samplesOf(pattern: string): readonly string[] {
  const optional = /\{([^{}]*)\}/.exec(pattern)
  if (optional !== null) {
    const { 0: whole, 1: inner = '', index } = optional
    const [before, after] = [pattern.slice(0, index), pattern.slice(index + whole.length)]
    return [...samplesOf(before + inner + after), ...samplesOf(before + after)].slice(0, MOST)
  }
  const path = pattern.replace(/\*[\w$]*/g, `${VALUE}/${VALUE}`).replace(/:[\w$]+(?:\((?:[^()\\]|\\.)*\))?\??/g, VALUE)
  // As the octets that a target would have.
  return [Buffer.from(path.startsWith('/') ? path : `/${path}`, 'utf8').toString('latin1')]
}

/** A bound for patterns with more optional parts than real ones have. */
const MOST = 32
