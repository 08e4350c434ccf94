/** Stands for the value of a parameter. No pattern contains this text. */
const VALUE = '%01'

/**
 * Sample paths for all requests that reach a route of Express (path-to-regexp 8) or Fastify: `/users/%01` for `/users/:id`. A wildcard
 * becomes two segments, because a policy that matches one segment does not cover it. An optional part makes two paths, with and without it.
 */
export function samplesOf(pattern: string): readonly string[] {
  const optional = /\{([^{}]*)\}/.exec(pattern)
  if (optional !== null) {
    const { 0: whole, 1: inner = '', index } = optional
    const [before, after] = [pattern.slice(0, index), pattern.slice(index + whole.length)]
    return [...samplesOf(before + inner + after), ...samplesOf(before + after)].slice(0, MOST)
  }
  const path = pattern.replace(/\*[\w$]*/g, `${VALUE}/${VALUE}`).replace(/:[\w$]+(?:\((?:[^()\\]|\\.)*\))?\??/g, VALUE)
  // One character per byte, as in a target.
  return [Buffer.from(path.startsWith('/') ? path : `/${path}`, 'utf8').toString('latin1')]
}

/** The most paths per pattern, so that many optional parts don't make a huge list. */
const MOST = 32
