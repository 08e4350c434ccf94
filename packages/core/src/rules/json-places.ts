import type { Path, Place } from './problems.ts'

/**
 * Where a value begins in a JSON text that has been parsed already, or the nearest one around it that is there.
 *
 * @param path names and places from the outermost value to it
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

/** The line and column of an offset. */
export function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}

/** Where the value of an object's member begins; of several with one name the last, as `JSON.parse` takes it. */
function member(text: string, open: number, name: string): number {
  if (text[open] !== '{') return -1
  let found = -1
  let at = blank(text, open + 1)
  while (text[at] === '"') {
    const end = afterString(text, at)
    const value = blank(text, blank(text, end) + 1)
    if (JSON.parse(text.slice(at, end)) === name) found = value
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
