import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

const ALERTS = fileURLToPath(new URL('../grafana/alerts.yaml', import.meta.url))
const DASHBOARD = new URL('../grafana/dashboard.json', import.meta.url)
const PAGE = 'docs/guides/observability.md'

interface Rule {
  readonly alert: string
  readonly annotations: Readonly<Record<string, string>>
}
const rules = (parse(readFileSync(ALERTS, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules)

const found = spawnSync('promtool', ['--version']).error === undefined
if (!found) console.warn('There is no promtool here (apt-get install prometheus), so the alerts are not tested by Prometheus.')

const folder = mkdtempSync(join(tmpdir(), 'weir-alerts-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs Prometheus' tool on a file with this content, and expects success. */
function promtool(verb: 'check' | 'test', content: unknown): void {
  const file = join(folder, `${verb}.yaml`)
  writeFileSync(file, stringify(content))
  const { status, stdout, stderr } = spawnSync('promtool', [verb, 'rules', file], { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
}

/** Values of a series in the notation of promtool, `start+step×times`, from the phases of a counter: minutes and increase per second. */
function counter(scrape: number, ...phases: readonly (readonly [minutes: number, perSecond: number])[]): string {
  let at = 0
  return phases
    .map(([minutes, perSecond]) => {
      const times = (minutes * 60) / scrape
      const step = perSecond * scrape
      const text = `${at}+${step}x${times - 1}`
      at += step * times
      return text
    })
    .join(' ')
}

/** A gauge that has one value for some minutes, and then another one. */
const gauge = (scrape: number, ...phases: readonly (readonly [minutes: number, value: number])[]) =>
  phases.map(([minutes, value]) => `${value}x${(minutes * 60) / scrape - 1}`).join(' ')

/** A test with the alerts that have fired at some time, up to each moment. */
interface Case {
  readonly scrape?: number
  readonly series: Readonly<Record<string, string>>
  readonly fired: Readonly<Record<string, readonly string[]>>
}

function group({ scrape = 15, series, fired }: Case): object {
  return {
    interval: `${scrape}s`,
    input_series: Object.entries(series).map(([name, values]) => ({
      series: name.replace(/\{|$/, (brace) => `{job="api",instance="a:1"${brace === '{' ? ',' : '}'}`),
      values,
    })),
    promql_expr_test: Object.entries(fired).map(([time, alerts]) => ({
      expr: 'group by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1d]))',
      eval_time: time,
      exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    })),
  }
}

const ALLOWED = 'weir_requests_total{result="allowed"}'
const REJECTED = 'weir_requests_total{result="rejected"}'
const BLOCKS = 'weir_blocks_total{policy="client",mode="enforced",cause="exceeded"}'

const histories = (scrape: number): readonly (readonly [string, Case])[] => [
  [
    'the first 70 minutes of a policy that always rejects and blocks',
    {
      scrape,
      series: { [ALLOWED]: counter(scrape, [80, 70]), [REJECTED]: counter(scrape, [80, 30]), [BLOCKS]: counter(scrape, [80, 2]) },
      fired: { '80m': [] },
    },
  ],
  [
    'an attack in the first 70 minutes',
    {
      scrape,
      series: {
        [ALLOWED]: counter(scrape, [30, 70], [20, 70]),
        [REJECTED]: counter(scrape, [30, 10], [20, 200]),
        [BLOCKS]: counter(scrape, [30, 0.2], [20, 5]),
      },
      fired: { '30m': [], '50m': ['WeirSuddenBlocks', 'WeirSuddenRejections'] },
    },
  ],
  [
    'an attack after an hour without a rejection',
    {
      scrape,
      series: {
        [ALLOWED]: counter(scrape, [100, 70], [20, 70]),
        [REJECTED]: counter(scrape, [100, 0], [20, 20]),
        [BLOCKS]: counter(scrape, [100, 0], [20, 1]),
      },
      fired: { '100m': [], '120m': ['WeirSuddenBlocks', 'WeirSuddenRejections'] },
    },
  ],
  [
    'requests after an hour without one',
    {
      scrape,
      series: { [ALLOWED]: counter(scrape, [100, 0], [20, 7]), [REJECTED]: counter(scrape, [100, 0], [20, 20]) },
      fired: { '100m': [], '120m': ['WeirSuddenRejections'] },
    },
  ],
  [
    'ten times the traffic with the same share of rejections',
    {
      scrape,
      series: { [ALLOWED]: counter(scrape, [80, 90], [30, 900]), [REJECTED]: counter(scrape, [80, 10], [30, 100]) },
      fired: { '110m': [] },
    },
  ],
]

const CASES: readonly (readonly [string, Case])[] = [
  ...histories(15),
  ...histories(60)
    .slice(0, 2)
    .map(([title, one]) => [`${title}, with a scrape a minute`, one] as const),
  [
    'dry runs and candidates',
    {
      series: Object.fromEntries(
        ['dry-run', 'candidate'].flatMap((mode) => [
          [`weir_blocks_total{policy="client",mode="${mode}",cause="exceeded"}`, counter(15, [30, 0], [20, 20])],
          [`weir_overflowing{policy="client",mode="${mode}"}`, gauge(15, [50, 1])],
          [`weir_overshoot_ratio{policy="client",mode="${mode}"}`, gauge(15, [50, 3])],
        ]),
      ),
      fired: { '50m': [] },
    },
  ],
  [
    'a policy that overflows and overshoots',
    {
      series: {
        'weir_overflowing{policy="client",mode="enforced"}': gauge(15, [10, 0], [10, 1]),
        'weir_overshoot_ratio{policy="client",mode="enforced"}': gauge(15, [10, 0.1], [10, 0.2]),
      },
      fired: { '10m': [], '15m': ['WeirOverflow', 'WeirOvershoot'] },
    },
  ],
  [
    'a process that rejected new rules',
    { series: { weir_rules_rejected: gauge(15, [10, 0], [10, 1]) }, fired: { '10m': [], '15m': ['WeirRulesRejected'] } },
  ],
  [
    'an outage of the store, and none of 30 s',
    {
      series: {
        weir_store_down: gauge(15, [10, 0], [0.5, 1], [10, 0], [10, 1]),
        'weir_sync_failures_total{cause="timeout"}': counter(15, [20.5, 0], [10, 3]),
      },
      fired: { '20m': [], '25m': ['WeirStoreDown', 'WeirSyncFailing'] },
    },
  ],
  [
    'two throttlers of one process, whose values add up',
    {
      series: {
        weir_store_down: gauge(15, [10, 2]),
        weir_rules_rejected: gauge(15, [10, 2]),
        'weir_overflowing{policy="client",mode="enforced"}': gauge(15, [10, 2]),
      },
      fired: { '5m': ['WeirOverflow', 'WeirRulesRejected', 'WeirStoreDown'] },
    },
  ],
  ['two clocks that differ', { series: { weir_clock_offset_seconds: gauge(15, [30, -3]) }, fired: { '9m': [], '15m': ['WeirClockOff'] } }],
]

describe.skipIf(!found)('in Prometheus', () => {
  test.each(CASES)('%s', (_title, one) => {
    promtool('test', { rule_files: [ALERTS], evaluation_interval: '30s', tests: [group(one)] })
  })

  test('every alert fires in one of these cases', () => {
    const fired = new Set(CASES.flatMap(([, one]) => Object.values(one.fired).flat()))
    expect([...fired].sort()).toEqual(rules.map(({ alert }) => alert).sort())
  })

  test.each([
    [{}, `@weir/core/${PAGE}`],
    [{ weir_runbooks: 'https://docs.example.com/observability.html' }, 'https://docs.example.com/observability.html'],
  ])('with external labels %o an alert links to its runbook', (external_labels, page) => {
    const series = group({ series: { weir_store_down: gauge(15, [5, 1]) }, fired: {} })
    const { summary, description } = rules.find(({ alert }) => alert === 'WeirStoreDown')?.annotations ?? {}
    const exp_annotations = {
      summary: summary?.replace('{{ $labels.instance }}', 'a:1'),
      description,
      runbook_url: `${page}#weirstoredown`,
    }
    const exp_alerts = [{ exp_labels: { severity: 'critical', job: 'api', instance: 'a:1' }, exp_annotations }]
    const alert_rule_test = [{ eval_time: '3m', alertname: 'WeirStoreDown', exp_alerts }]
    promtool('test', { rule_files: [ALERTS], evaluation_interval: '30s', tests: [{ ...series, external_labels, alert_rule_test }] })
  })

  test('every query of the dashboard is valid', () => {
    const { panels, annotations } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
      panels: { targets?: { expr: string }[] }[]
      annotations: { list: { expr: string }[] }
    }
    const queries = [...panels.flatMap(({ targets = [] }) => targets), ...annotations.list].map(({ expr }) => expr)
    const record = queries.map((expr, at) => ({ record: `query_${at}`, expr: expr.replaceAll(/\$__(rate_)?interval/g, '1m') }))
    promtool('check', { groups: [{ name: 'dashboard', rules: record }] })
  })
})

test('every alert has a section in the guide', () => {
  const guide = readFileSync(new URL(`../../../${PAGE}`, import.meta.url), 'utf8')
  const sections = [...guide.matchAll(/^#+ (Weir\w+)$/gm)].map(([, name]) => name)
  expect(sections.sort()).toEqual(rules.map(({ alert }) => alert).sort())
  for (const { alert, annotations } of rules)
    expect(annotations['runbook_url']).toBe(`{{ or $externalLabels.weir_runbooks "@weir/core/${PAGE}" }}#${alert.toLowerCase()}`)
})
