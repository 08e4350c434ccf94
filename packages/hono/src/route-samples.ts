/** Stands for the value of a parameter. No pattern contains this text. */
const VALUE = '%01'

/** Finds regular expressions that may match a slash: a literal slash, any character, or a negated class. */
const SPANS = /\/|(?<!\\)\.[+*{]|\[\^|\\[DSW]/

/**
 * Sample paths for all requests that reach a route of Hono: `/users/%01` for `/users/:id{[0-9]+}`. A wildcard becomes two segments, because
 * a policy that matches one segment does not cover it. A wildcard at the end may also match no segment.
 */
export function samplesOf(pattern: string): readonly string[] {
  const segments = pattern.replace(/\{(?:[^{}]|\{[^{}]*\})*\}/g, (expression) => (SPANS.test(expression) ? '{/}' : '')).split('/')
  let paths = ['']
  for (const [place, segment] of segments.entries()) {
    if (place === 0 && segment === '') continue
    const last = place === segments.length - 1
    const whole = paths
    paths = paths.map((path) => `${path}/${sample(segment)}`)
    if (last && (segment === '*' || segment.endsWith('?'))) paths.push(...whole.map((path) => path || '/'))
  }
  // One character per byte, as in a target.
  return paths.map((path) => Buffer.from(path, 'utf8').toString('latin1'))
}

function sample(segment: string): string {
  if (segment === '*' || segment.includes('{/}')) return `${VALUE}/${VALUE}`
  return segment.startsWith(':') ? VALUE : segment
}
