import type { Readable, Writable } from 'node:stream'
import Table from 'cli-table3'
import pc from 'picocolors'

/** A stream that may be a terminal or a pipe. */
export type Stream = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** The streams and settings with which the command runs. */
export interface Surroundings {
  readonly stdin: Readable
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
}

export type Colors = ReturnType<typeof pc.createColors>

/** Control characters beyond those of ASCII, what has no width, and what turns the direction of writing. */
const UNSEEN = /[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, '0')
}

/** Where the command writes: what was asked for to the standard output, all else to the standard error. */
export class Output {
  readonly surroundings: Surroundings
  readonly colors: Colors
  /** Characters of a line. */
  readonly width: number

  constructor(surroundings: Surroundings) {
    const { stdout, env } = surroundings
    const terminal = stdout.isTTY === true && env['TERM'] !== 'dumb'
    this.surroundings = surroundings
    this.colors = pc.createColors(terminal && (env['NO_COLOR'] ?? '') === '')
    this.width = Math.min(160, Math.max(60, stdout.columns ?? 100))
  }

  /** Lines of the result. */
  line(text = ''): void {
    this.surroundings.stdout.write(`${text}\n`)
  }

  /** The result as data. What JSON need not escape, and a terminal would obey or hide, is escaped too. */
  json(value: unknown): void {
    this.line(JSON.stringify(value, undefined, 2).replace(UNSEEN, (character) => `\\u${hex(character)}`))
  }

  /** Something beside the result. */
  note(text: string): void {
    this.surroundings.stderr.write(`${text}\n`)
  }

  /** @param head names of columns; those of numbers begin with `#` */
  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    this.line(this.tableText(head, rows))
  }

  /** The same as text. */
  tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
    const table = new Table({
      head: head.map((name) => this.colors.bold(name.replace(/^#/, ''))),
      colAligns: head.map((name) => (name.startsWith('#') ? 'right' : 'left')),
      style: { head: [], border: [], compact: true },
    })
    for (const row of rows) table.push([...row])
    return table.toString()
  }
}
