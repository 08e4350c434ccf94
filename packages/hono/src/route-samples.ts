/** Stands for the value of a parameter. No pattern contains this text. */
const VALUE = '%01'

/** A regular expression that may take a slash: by name, by any character, or by all but some. */
const SPANS = /\/|(?<!\\)\.[+*{]|\[\^|\\[DSW]/

/**
 * Paths that stand for all that reach a route of Hono: `/users/%01` for `/users/:id{[0-9]+}`. A wildcard is two segments, since a
 * policy that matches one only does not cover it; at the end it is none as well.
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
  // As the octets that a target would have.
  return paths.map((path) => Buffer.from(path, 'utf8').toString('latin1'))
}

function sample(segment: string): string {
  if (segment === '*' || segment.includes('{/}')) return `${VALUE}/${VALUE}`
  return segment.startsWith(':') ? VALUE : segment
}
