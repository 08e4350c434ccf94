/** Stands for the value of a parameter. No pattern contains this text. */
const VALUE = '%01'

/**
 * Paths that stand for all that reach a route of Fastify (find-my-way): `/users/%01` for `/users/:id(^\\d+$)`. A wildcard is two
 * segments, since a policy that matches one only does not cover it.
 */
export function samplesOf(pattern: string): readonly string[] {
  const optional = /(\/:[^/()]*?)\?(\/?)/
  if (!optional.test(pattern)) return [sample(pattern)]
  return [sample(pattern.replace(optional, '$1$2')), sample(pattern.replace(optional, '$2') || '/')]
}

function sample(pattern: string): string {
  let path = ''
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i] as string
    if (character === '*') path += `${VALUE}/${VALUE}`
    else if (character !== ':') path += character
    else if (pattern[i + 1] === ':') {
      path += character
      i++
    } else {
      path += VALUE
      while (i + 1 < pattern.length && !'(-./'.includes(pattern[i + 1] as string)) i++
      if (pattern[i + 1] === '(') i = closing(pattern, i + 1)
    }
  }
  // As the octets that a target would have.
  return Buffer.from(path.startsWith('/') ? path : `/${path}`, 'utf8').toString('latin1')
}

/** Where the parenthesis that opens at a place is closed. */
function closing(pattern: string, open: number): number {
  let depth = 0
  for (let i = open; i < pattern.length; i++) {
    if (pattern[i] === '\\') i++
    else if (pattern[i] === '(') depth++
    else if (pattern[i] === ')' && --depth === 0) return i
  }
  return pattern.length
}
