import { join } from 'node:path'
import GithubSlugger from 'github-slugger'
import type { Page } from './pages.ts'

/** A line of a comment that names the source of a figure in the text above it. */
export interface Mark {
  /** As it appears in the text, e.g. `2.7 %`. */
  readonly figure: string
  /** Page below `docs` and heading of the table, e.g. `guides/accuracy.md#what-to-expect`. */
  readonly source: string
  /** First cells of the row, preceded by the head of the first column if several tables have such a row. */
  readonly row: readonly string[]
  readonly column: string
}

/** Text between two headings or marks, and the marks after it. */
export interface Passage {
  readonly page: string
  /** Without code, generated tables and comments. */
  readonly text: string
  readonly marks: readonly Mark[]
}

export interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const MARKS = /<!-- measured\n([\s\S]*?)-->/
const GENERATED = /<!-- table:[\s\S]*?<!-- \/table -->/g
const BLOCK_OF_CODE = /^(```+).*\n[\s\S]*?^\1$/gm
const CODE = /`[^`\n]*`/g
const HEADING = /^(?=#{1,6} )/m

/** Figures that look measured: parts in per cent, sizes, and times that no option has. */
const FIGURE = /\d[\d.,]* (?:%|[KMG]i?B|bytes|ns|µs)(?![\w])/g

export function passagesOf({ path, text }: Page): Passage[] {
  return text
    .replace(BLOCK_OF_CODE, '')
    .replace(GENERATED, '')
    .split(HEADING)
    .flatMap((section) => {
      const parts = section.split(MARKS)
      return parts.flatMap((part, index) =>
        index % 2 === 1 ? [] : [{ page: path, text: part.replace(CODE, ''), marks: marksOf(path, parts[index + 1] ?? '') }],
      )
    })
}

function marksOf(page: string, lines: string): Mark[] {
  return lines
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [figure, place, ...more] = line.split(/ = | \| /).map(plain)
      const column = more.pop()
      if (figure === undefined || place === undefined || column === undefined || more.length === 0)
        throw new Error(`${page}: "${line}" must be "figure = page.md#heading | cells of the row | column"`)
      return { figure, source: place, row: more, column }
    })
}

export function figuresOf({ text }: Passage): string[] {
  return text.match(FIGURE) ?? []
}

/** The tables of a page, by the anchor of their heading. */
export function tablesOf({ text }: Page): Map<string, Table[]> {
  const slugger = new GithubSlugger()
  const found = new Map<string, Table[]>()
  for (const section of text.replace(BLOCK_OF_CODE, '').split(HEADING)) {
    const heading = /^#+ (.*)/.exec(section)?.[1]
    if (heading === undefined) continue
    const tables = [...section.matchAll(/(?:^\|.*\n)+/gm)].map(([lines]) => {
      const [head = [], , ...rows] = lines.trimEnd().split('\n').map(cellsOf)
      return { head: namesOf(head), rows }
    })
    found.set(slugger.slug(heading), tables)
  }
  return found
}

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map(plain)
}

function plain(text: string): string {
  return text.replace(/\*\*|`/g, '').trim()
}

/** Heads of columns. `overshoot at ×1.1`, `at ×2` become `overshoot at ×1.1`, `overshoot at ×2`. */
function namesOf(head: readonly string[]): string[] {
  let before = ''
  return head.map((name) => {
    const load = /(?:at )?×[\d.]+$/.exec(name)
    if (load === null) return name
    if (load.index > 0) before = name.slice(0, load.index)
    return `${before}${load[0]}`
  })
}

/** The fault of a mark, or undefined if the table has its figure. */
export function faultOf({ figure, source, row, column }: Mark, pages: readonly Page[]): string | undefined {
  const [path = '', anchor = ''] = source.split('#')
  const page = pages.find((one) => one.path === join('docs', path))
  const tables = page === undefined ? undefined : tablesOf(page).get(anchor)
  if (tables === undefined) return `there is no heading ${source}`
  const cells = tables.flatMap(({ head, rows }) => {
    const at = head.indexOf(column)
    const own = rows.filter((cells) => begins(cells, row) || begins([head[0] ?? '', ...cells], row))
    return at < 0 ? [] : own.map((cells) => cells[at] ?? '')
  })
  const [cell] = cells
  if (cell === undefined || cells.length > 1) return `${source} has ${cells.length} cells "${row.join(' | ')}" in a column "${column}"`
  return agrees(figure, cell, `${column} ${row.join(' ')}`) ? undefined : `${source} has ${cell}, not ${figure}`
}

function begins(cells: readonly string[], row: readonly string[]): boolean {
  return row.every((cell, index) => cells[index] === cell)
}

const KINDS: readonly Readonly<Record<string, number>>[] = [
  { bytes: 1, KB: 1e3, MB: 1e6, GB: 1e9 },
  { ns: 1, µs: 1e3, ms: 1e6 },
  { '%': 1 },
]
const UNIT = /(?<!\w)(?:bytes|KB|MB|GB|ns|µs|ms|%)(?!\w)/g

/** Whether a cell has the figure, rounded as the figure is. A goal in brackets doesn't count. */
export function agrees(figure: string, cell: string, labels: string): boolean {
  const shown = cell.replace(/\(.*?\)/g, '')
  const values = numbersIn(shown).map(({ value }) => value * factorOf(figure, shown, labels))
  return numbersIn(figure).every(({ value, digits }) => values.some((other) => Math.abs(other - value) <= 0.5 * 10 ** -digits + 1e-9))
}

/** The unit of a cell in units of the figure. The cell's row or column may name its unit. */
function factorOf(figure: string, cell: string, labels: string): number {
  const [mine] = figure.match(UNIT) ?? []
  const [own] = cell.match(UNIT) ?? []
  if (mine === undefined) return 1
  const kind = KINDS.find((units) => mine in units) ?? {}
  const theirs = own ?? (labels.match(UNIT) ?? []).find((unit) => unit in kind) ?? mine
  return (kind[theirs] ?? Number.NaN) / (kind[mine] ?? 1)
}

function numbersIn(text: string): { value: number; digits: number }[] {
  return (text.match(/\d[\d,]*(?:\.\d+)?/g) ?? []).map((number) => ({
    value: Number(number.replaceAll(',', '')),
    digits: number.split('.')[1]?.length ?? 0,
  }))
}
