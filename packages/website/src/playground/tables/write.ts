import type { Outcome } from '../runs/run.ts'
import { type Table, tablesOf } from './tables.ts'

/** The result of a run as text: the tables of the page, and the fingerprint of all decisions. */
export function written(outcome: Outcome): string {
  const agreement = outcome.kind === 'policy' ? [`A sentence for an agreement:\n${outcome.agreement}`] : []
  return [...tablesOf(outcome).map(tableText), ...agreement, `Fingerprint of all decisions: ${outcome.digest}`].join('\n\n')
}

/** Aligns columns. All but the first are aligned to the right. */
function tableText({ caption, columns, rows }: Table): string {
  const lines = columns.length > 0 ? [columns, ...rows] : rows
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((cells) => (cells[column] ?? '').length)))
  const text = lines.map((cells) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  '),
  )
  return [...(caption === undefined ? [] : [caption]), ...text].join('\n')
}
