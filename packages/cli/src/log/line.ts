import type { ClientOptions } from './client.ts'
import { parseJsonLine } from './json-line.ts'
import type { LogRecord } from './record.ts'
import { parseTextLine } from './text-line.ts'

/** A quoted request before another quoted field, a number or the end of the line. In error logs a comma follows it. */
const REQUEST = /"[A-Z]{3,16} [^"]* HTTP\/\d[\d.]*"(?:\s|$)/
// biome-ignore lint/suspicious/noControlCharactersInRegex: what colours a terminal begins with one
const COLOURS = /\x1b\[[\d;]*m/g
/** The deepest nesting. Docker's JSON may contain the line of another log collector, which contains the server's line. */
const DEEPEST = 3

/**
 * Reads a line of any form: text or JSON, alone, after the prefix of a log collector, or in a field of its JSON. An unknown client is `''`,
 * and an unknown time is NaN.
 *
 * @param line decoded as latin1, so that every byte is one character. A line that begins with a brace is decoded as UTF-8
 * @returns undefined if the line is no request
 */
export function parseLine(line: string, options: ClientOptions = {}, depth = 0): LogRecord | undefined {
  const plain = line.includes('\x1b[') ? line.replace(COLOURS, '') : line
  const inner = (text: string) => (depth < DEEPEST ? parseLine(text, options, depth + 1) : undefined)
  if (plain.charCodeAt(0) === 0x7b) return parseJsonLine(plain, options.field, inner)
  const record = parseTextLine(plain)
  if (record !== undefined) return record
  const brace = plain.endsWith('}') ? plain.indexOf('{"') : -1
  return brace > 0 ? inner(depth === 0 ? Buffer.from(plain.slice(brace), 'latin1').toString() : plain.slice(brace)) : undefined
}

/** Whether an unreadable line shows a request. */
export function showsRequest(line: string): boolean {
  return REQUEST.test(line)
}
