import type { Path, Place } from './problems.ts'

/**
 * The place of a value in a JSON text that has been parsed already. If the value is missing, the place of the nearest value around it.
 *
 * @param path names and indexes from the outermost value to it
 */
export function placeInJson(text: string, path: Path): Place {
  let at = blank(text, 0)
  for (const step of path) {
    const next = typeof step === 'number' ? item(text, at, step) : member(text, at, step)
    if (next < 0) break
    at = next
  }
  return placeAt(text, at)
}

/** A name that an object of a JSON text repeats. */
export interface RepeatedName {
  readonly path: Path
  readonly at: number
  readonly first: number
}

/**
 * Names that objects have more than once, at most `most` of them. `JSON.parse` keeps only the last value. The text has been parsed already.
 */
export function repeatedNames(text: string, most: number): readonly RepeatedName[] {
  const found: RepeatedName[] = []
  /** The surrounding objects and lists. An object has its names and their offsets. */
  const around: { readonly names: Map<string, number> | undefined; step: string | number }[] = []
  /** Whether the next string is a name. */
  let naming = false
  for (let at = 0; at < text.length && found.length < most; at++) {
    const character = text[at]
    const inner = around.at(-1)
    if (character === '{' || character === '[') {
      naming = character === '{'
      around.push(naming ? { names: new Map(), step: '' } : { names: undefined, step: 0 })
    } else if (character === '}' || character === ']') around.pop()
    else if (character === ',' && inner !== undefined) {
      naming = inner.names !== undefined
      if (typeof inner.step === 'number') inner.step++
    } else if (character === '"') {
      const end = afterString(text, at)
      if (naming && inner?.names !== undefined) {
        const name = nameIn(text, at, end)
        const first = inner.names.get(name)
        inner.step = name
        if (first === undefined) inner.names.set(name, at)
        else found.push({ path: around.map(({ step }) => step), at, first })
        naming = false
      }
      at = end - 1
    }
  }
  return found
}

/** The string between two quotes. */
function nameIn(text: string, quote: number, end: number): string {
  const plain = text.slice(quote + 1, end - 1)
  return plain.includes('\\') ? JSON.parse(text.slice(quote, end)) : plain
}

/** The line and column of an offset. */
export function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}

/** The start of the value of an object's member. If the name is repeated, the last value counts, as in `JSON.parse`. */
function member(text: string, open: number, name: string): number {
  if (text[open] !== '{') return -1
  let found = -1
  let at = blank(text, open + 1)
  while (text[at] === '"') {
    const end = afterString(text, at)
    const value = blank(text, blank(text, end) + 1)
    if (nameIn(text, at, end) === name) found = value
    at = blank(text, afterValue(text, value))
    if (text[at] === ',') at = blank(text, at + 1)
  }
  return found
}

function item(text: string, open: number, place: number): number {
  if (text[open] !== '[') return -1
  let at = blank(text, open + 1)
  for (let skipped = 0; skipped < place && text[at] !== ']'; skipped++) {
    at = blank(text, afterValue(text, at))
    if (text[at] === ',') at = blank(text, at + 1)
  }
  return text[at] === ']' ? -1 : at
}

function blank(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\r\n'.includes(text[at] as string)) at++
  return at
}

function afterString(text: string, quote: number): number {
  let at = quote + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function afterValue(text: string, from: number): number {
  let depth = 0
  let at = from
  while (at < text.length) {
    const character = text[at] as string
    if (character === '"') at = afterString(text, at)
    else if (character === '{' || character === '[') {
      depth++
      at++
    } else if (character === '}' || character === ']') {
      if (depth === 0) return at
      depth--
      at++
    } else if (depth === 0 && ', \t\r\n'.includes(character)) return at
    else at++
    if (depth === 0 && (character === '"' || character === '}' || character === ']')) return at
  }
  return at
}
