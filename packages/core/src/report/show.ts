import { isDate } from 'node:util/types'
import { withoutPage } from './page.ts'

/** Longest text of a foreign value or error inside a message, in characters. */
const LONGEST = 200
/** Longest form of a value, in characters. */
const LONGEST_VALUE = 80
/** Entries of a list or object, and levels of nesting, that are read. A message shows no more. */
const ENTRIES = 40
const DEPTH = 3
const HIDDEN = 'something that can not be shown'

/**
 * Characters that must not reach a terminal or a log unescaped: control characters (C0, C1), line separators, invisible characters,
 * characters that change the direction of writing, and halves of characters.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const BREAKS = /^[\t\n\v\f\r\u0085\u2028\u2029]$/

/** A text from outside on one line, safe to print. Line breaks become spaces, and other unsafe characters become escapes such as `\x1b`. */
export function printable(text: string, longest: number = LONGEST): string {
  // Cutting first saves the work for the rest.
  const start = text.length > longest ? text.slice(0, longest) : text
  const safe = start.replace(UNSAFE, escaped)
  if (text.length <= longest && safe.length <= longest) return safe
  // The cut must not separate the two halves of a character.
  return `${safe.slice(0, longest - 3).replace(/[\ud800-\udbff]$/, '')}...`
}

function escaped(character: string): string {
  if (BREAKS.test(character)) return ' '
  const code = character.codePointAt(0) as number
  if (code > 0xffff) return `\\u{${code.toString(16)}}`
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}

/** A value as it appears in a message: short, on one line, safe to print. It never throws, whatever the value is. */
export function show(value: unknown): string {
  try {
    return printable(form(value, 0), LONGEST_VALUE)
  } catch {
    return HIDDEN
  }
}

/** The kind of a value without its content, because the value may contain a password. It never throws, whatever the value is. */
export function kindOf(value: unknown): string {
  try {
    if (Array.isArray(value)) return 'an array'
    if (typeof value === 'object' && value !== null) {
      const { name } = (Object.getPrototypeOf(value) as object | null)?.constructor ?? Object
      return name === 'Object' ? 'an object' : `an instance of ${show(name)}`
    }
    return value === undefined || value === null ? String(value) : `a ${typeof value}`
  } catch {
    return HIDDEN
  }
}

/** The message of an error, or of any other thrown value: on one line, safe to print. It never throws. */
export function reasonOf(error: unknown, longest: number = LONGEST): string {
  try {
    if (typeof error === 'string') return printable(error, longest)
    if (!(error instanceof Error)) return show(error)
    const message: unknown = error.message
    return typeof message === 'string' && message !== '' ? printable(withoutPage(message), longest) : show(error.name)
  } catch {
    return HIDDEN
  }
}

/** The origin of an error: its stack, on one line, safe to print. It never throws. */
export function stackOf(error: unknown): string {
  try {
    const stack: unknown = error instanceof Error ? error.stack : undefined
    return typeof stack === 'string' ? printable(stack, 1_000) : reasonOf(error)
  } catch {
    return reasonOf(error)
  }
}

/** The value as JSON if possible. It reads no more than a message shows, and never calls `toJSON` or `toString`. */
function form(value: unknown, depth: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, LONGEST_VALUE))
  if (typeof value === 'bigint') return value > -1e21 && value < 1e21 ? String(value) : 'a very large bigint'
  if (typeof value === 'function') return `function ${typeof value.name === 'string' && value.name !== '' ? value.name : '(anonymous)'}`
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return depth === DEPTH ? '[...]' : `[${formOfList(value, depth)}]`
  // biome-ignore lint/style/noRestrictedGlobals: no time is read here
  if (isDate(value)) return `"${Date.prototype.toISOString.call(value)}"`
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) return Object.prototype.toString.call(value)
  return depth === DEPTH ? '{...}' : `{${formOfEntries(value as Record<string, unknown>, depth)}}`
}

function formOfList(list: readonly unknown[], depth: number): string {
  const length = Math.min(list.length, ENTRIES)
  return Array.from({ length }, (_, i) => form(list[i], depth + 1)).join(',')
}

function formOfEntries(value: Readonly<Record<string, unknown>>, depth: number): string {
  const entries: string[] = []
  for (const name in value) {
    if (entries.length === ENTRIES) break
    entries.push(`${form(name, depth)}:${form(value[name], depth + 1)}`)
  }
  return entries.join(',')
}

/** Words as a message lists them: `"a", "b" or "c"`. */
export function alternatives(words: readonly string[], last = 'or'): string {
  return words
    .map((word) => JSON.stringify(word))
    .join(', ')
    .replace(/, ([^,]*)$/, ` ${last} $1`)
}
