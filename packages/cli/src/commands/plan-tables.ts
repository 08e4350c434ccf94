import type { Output } from '../terminal/output.ts'
import { count, percent, safeText } from '../terminal/text.ts'
import type { PlanReport, PolicyReport, RulesReport, SweepReport } from './plan-report.ts'

/** A column of the formats `csv` and `md`: its name, its value for programs, and its text for readers. */
interface Column {
  readonly name: string
  readonly value: (policy: PolicyReport, rules: RulesReport) => string | number
  readonly text?: (policy: PolicyReport) => string
}

const COLUMNS: readonly Column[] = [
  { name: 'rules', value: (_, { rules }) => rules },
  { name: 'policy', value: ({ name }) => name },
  { name: 'limit', value: ({ limit }) => limit },
  { name: 'interval_ms', value: ({ interval }) => interval },
  { name: 'requests', value: ({ requests }) => requests },
  {
    name: 'rejected',
    value: ({ rejected }) => rejected,
    text: ({ rejected, requests }) => `${count(rejected)} (${percent(rejected, requests)})`,
  },
  { name: 'keys', value: ({ keys }) => keys },
  {
    name: 'keys_rejected',
    value: ({ rejectedKeys }) => rejectedKeys,
    text: ({ rejectedKeys, keys }) => `${count(rejectedKeys)} (${percent(rejectedKeys, keys)})`,
  },
  { name: 'rejected_exact', value: ({ exactRejected }) => exactRejected },
  { name: 'overshoot', value: ({ overshoot }) => overshoot.units },
]

type Row = readonly [policy: PolicyReport, rules: RulesReport]

function rowsOf(report: PlanReport | SweepReport): readonly Row[] {
  const all = 'sweep' in report ? report.sweep : report.against === undefined ? [report.plan] : [report.against, report.plan]
  return all.flatMap((rules) => rules.policies.map((policy) => [policy, rules] as const))
}

/** Prints a row per policy as CSV (RFC 4180). */
export function showCsv(report: PlanReport | SweepReport, out: Output): void {
  out.line(COLUMNS.map(({ name }) => name).join(','))
  for (const [policy, rules] of rowsOf(report)) out.line(COLUMNS.map(({ value }) => csvField(value(policy, rules))).join(','))
}

function csvField(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const text = safeText(value, 200)
  // A spreadsheet would run a text that begins like a formula.
  const plain = /^[=+\-@]/.test(text) ? `'${text}` : text
  return /[",]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

/** Prints a row per policy as a table in Markdown. */
export function showMarkdown(report: PlanReport | SweepReport, out: Output): void {
  const isNumber = ({ name }: Column): boolean => name !== 'rules' && name !== 'policy'
  out.line(`| ${COLUMNS.map(({ name }) => name.replaceAll('_', ' ')).join(' | ')} |`)
  out.line(`|${COLUMNS.map((column) => (isNumber(column) ? '--:' : '---')).join('|')}|`)
  for (const [policy, rules] of rowsOf(report)) {
    const fields = COLUMNS.map(({ value, text }) => text?.(policy) ?? markdownField(value(policy, rules)))
    out.line(`| ${fields.join(' | ')} |`)
  }
}

function markdownField(value: string | number): string {
  return typeof value === 'number' ? count(value) : safeText(value, 200).replace(/[\\|`*_<>[\]]/g, '\\$&')
}
