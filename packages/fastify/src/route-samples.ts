/** Stands for the value of a parameter. No pattern contains this text. */
const VALUE = '%01'

/**
 * Sample paths for all requests that reach a route of Fastify (find-my-way): `/users/%01` for `/users/:id(^\\d+$)`. A wildcard becomes two
 * segments, because a policy that matches one segment does not cover it.
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
  // One character per byte, as in a target.
  return Buffer.from(path.startsWith('/') ? path : `/${path}`, 'utf8').toString('latin1')
}

/** The index of the parenthesis that closes the one at `open`. */
function closing(pattern: string, open: number): number {
  let depth = 0
  for (let i = open; i < pattern.length; i++) {
    if (pattern[i] === '\\') i++
    else if (pattern[i] === '(') depth++
    else if (pattern[i] === ')' && --depth === 0) return i
  }
  return pattern.length
}
