import type { ClientOptions } from './client.ts'
import { parseJsonLine } from './json-line.ts'
import type { LogRecord } from './record.ts'
import { parseTextLine } from './text-line.ts'

/** A quoted request that another quoted field, a number or nothing follows: in error logs a comma does. */
const REQUEST = /"[A-Z]{3,16} [^"]* HTTP\/\d[\d.]*"(?:\s|$)/
// biome-ignore lint/suspicious/noControlCharactersInRegex: what colours a terminal begins with one
const COLOURS = /\x1b\[[\d;]*m/g
/** Docker's JSON may hold the line of another program that collects logs, which holds that of the server. */
const DEEPEST = 3

/**
 * Reads a line of any form: text or JSON, alone, behind the prefix of a program that collects logs, or in a field of its JSON. A request
 * whose client or time is not known has the client `''`, or the time NaN.
 *
 * @param line decoded as latin1, so that every byte is one character; or as UTF-8, if it begins with a brace
 * @returns undefined when it is no request
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

/** Whether a line that could not be read shows a request all the same. */
export function showsRequest(line: string): boolean {
  return REQUEST.test(line)
}
