import { type Figure, type GoalCase, type Verdict, verdictOf } from './goal.ts'

/** One line of the report. */
export interface Line {
  readonly goal: string
  readonly title: string
  readonly case: string
  readonly figure: string
  readonly value: number
  readonly most?: number
  readonly least?: number
  readonly kept?: number
  readonly unit: Figure['unit']
  readonly verdict: Verdict
}

export function linesOf(goal: { readonly id: string; readonly title: string }, { name }: GoalCase, figures: readonly Figure[]): Line[] {
  return figures.map((figure) => ({
    goal: goal.id,
    title: goal.title,
    case: name,
    figure: figure.name,
    value: figure.value,
    ...(figure.most !== undefined && { most: figure.most }),
    ...(figure.least !== undefined && { least: figure.least }),
    ...(figure.kept !== undefined && { kept: figure.kept }),
    unit: figure.unit,
    verdict: verdictOf(figure),
  }))
}

const WIDTHS = [4, 74, 44, 20, 16] as const

export function header(): string {
  return row(['', 'scenario', 'figure', 'measured', 'goal', ''])
}

export function titleOf(goal: { readonly id: string; readonly title: string }): string {
  return `\n${goal.id.padEnd(4)}${goal.title}`
}

export function format(line: Line): string {
  const { most, least, unit } = line
  const limit = most !== undefined ? `<= ${number(most)} ${unit}` : least !== undefined ? `>= ${number(least)} ${unit}` : 'no goal'
  const isStated = most === undefined && least === undefined
  const verdict = isStated
    ? 'stated'
    : line.kept === undefined || line.verdict === 'holds'
      ? line.verdict
      : `${line.verdict}, may be ${number(line.kept)} ${unit}`
  return row(['', line.case, line.figure, `${number(line.value)} ${unit}`, limit, verdict])
}

function row(cells: readonly string[]): string {
  return cells.map((cell, index) => cell.padEnd(WIDTHS[index] ?? 0)).join(' ')
}

/** Rounds to at most four decimals, without trailing zeros. */
function number(value: number): string {
  return String(Math.round(value * 10_000) / 10_000)
}
