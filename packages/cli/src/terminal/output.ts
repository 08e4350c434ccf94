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

/** Characters that JSON doesn't escape: further control characters, characters without width, and changes of the writing direction. */
const UNSEEN = /[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, '0')
}

/** The output of the command: results to the standard output, notes to the standard error. */
export class Output {
  readonly surroundings: Surroundings
  readonly colors: Colors
  /** Characters per line. */
  readonly width: number

  constructor(surroundings: Surroundings) {
    const { stdout, env } = surroundings
    const terminal = stdout.isTTY === true && env['TERM'] !== 'dumb'
    this.surroundings = surroundings
    this.colors = pc.createColors(terminal && (env['NO_COLOR'] ?? '') === '')
    this.width = Math.min(160, Math.max(60, stdout.columns ?? 100))
  }

  /** Writes a line of the result. */
  line(text = ''): void {
    this.surroundings.stdout.write(`${text}\n`)
  }

  /** Writes the result as JSON. Escapes also characters that a terminal would interpret or hide. */
  json(value: unknown): void {
    this.line(JSON.stringify(value, undefined, 2).replace(UNSEEN, (character) => `\\u${hex(character)}`))
  }

  /** Writes a note that is no part of the result. */
  note(text: string): void {
    this.surroundings.stderr.write(`${text}\n`)
  }

  /** @param head names of columns. Names of numeric columns begin with `#` */
  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    this.line(this.tableText(head, rows))
  }

  /** The table as text. */
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
