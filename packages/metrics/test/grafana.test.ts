import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { METRICS } from '../src/index.ts'

interface Panel {
  readonly id: number
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const read = (name: string) => readFileSync(new URL(`../grafana/${name}`, import.meta.url), 'utf8')
const dashboard = JSON.parse(read('dashboard.json')) as { panels: readonly Panel[]; templating: { list: readonly { query: unknown }[] } }
const rules = (
  parse(read('alerts.yaml')) as { groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[] }
).groups.flatMap((group) => group.rules)

const labelsOf = new Map<string, readonly string[]>()
for (const { prometheus, kind, labels } of METRICS) {
  if (kind === 'histogram') for (const end of ['_bucket', '_sum', '_count']) labelsOf.set(prometheus + end, [...labels, 'le'])
  else labelsOf.set(prometheus, labels)
}
/** Labels that Prometheus adds. */
const ADDED = ['job', 'instance']

function check(expression: string): void {
  const names = expression.match(/\bweir_\w+/g) ?? []
  expect(names, expression).not.toEqual([])
  for (const name of names) expect(labelsOf.has(name), `${name} in ${expression}`).toBe(true)
  const known = new Set([...ADDED, ...names.flatMap((name) => labelsOf.get(name) ?? [])])
  for (const [, list] of expression.matchAll(/by \(([^)]*)\)/g))
    for (const label of (list ?? '').split(/,\s*/)) expect(known, expression).toContain(label)
  for (const [, name, list] of expression.matchAll(/(weir_\w+)\{([^}]*)\}/g)) {
    for (const [, label] of (list ?? '').matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
      expect([...ADDED, ...(labelsOf.get(name ?? '') ?? [])], expression).toContain(label)
  }
}

test('the dashboard asks for metrics and labels that exist', () => {
  const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  expect(expressions.length).toBeGreaterThan(20)
  for (const expression of expressions) check(expression)
})

test('its variables are found in metrics that exist', () => {
  const queries = dashboard.templating.list.flatMap(({ query }) => (JSON.stringify(query).match(/weir_\w+/g) ?? []) as string[])
  expect(queries.length).toBeGreaterThan(2)
  for (const name of queries) expect(labelsOf.has(name), name).toBe(true)
})

test('the dashboard shows every metric', () => {
  const shown = JSON.stringify(dashboard.panels)
  for (const { prometheus } of METRICS) expect(shown, prometheus).toContain(prometheus)
})

test('alerts use enforced policies only, and the dashboard shows them unless you choose another mode', () => {
  const check = (expression: string, selector: string) => {
    for (const [, name = '', list] of expression.matchAll(/\b(weir_\w+)(\{[^}]*\})?/g))
      if (labelsOf.get(name)?.includes('mode')) expect(list, expression).toContain(selector)
  }
  for (const { expr } of rules) check(expr, 'mode="enforced"')
  for (const { expr } of dashboard.panels.flatMap(({ targets = [] }) => targets)) check(expr, 'mode="$mode"')
  expect(dashboard.templating.list).toContainEqual(
    expect.objectContaining({ name: 'mode', query: 'enforced,dry-run,candidate', current: { text: 'enforced', value: 'enforced' } }),
  )
})

test('panels have different ids', () => {
  const ids = dashboard.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test.each(rules.map((rule) => [rule.alert, rule] as const))(
  'the alert %s asks for metrics and labels that exist',
  (_name, { expr, annotations }) => {
    check(expr)
    expect(annotations['summary']).toBeTruthy()
    const kept = new Set([...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => (list ?? '').split(/,\s*/)))
    for (const [, label] of Object.values(annotations)
      .join(' ')
      .matchAll(/\$labels\.(\w+)/g))
      if (kept.size > 0) expect(kept).toContain(label)
  },
)
