import type { LanesOutcome } from '../runs/lanes.ts'
import { whole } from '../tables/format.ts'
import { waysTable } from '../tables/tables.ts'
import { Chart } from './chart.tsx'
import { Figures } from './figures.tsx'

const COLORS = ['--ok', '--warn', '--accent'] as const

/** Compares other ways to count with the same requests. */
export function Ways({ outcome }: { readonly outcome: LanesOutcome }) {
  const { ways, interval, limit, offered } = outcome
  return (
    <section class="panel" aria-label="The same requests, counted in three ways">
      <h2>The same requests, counted in three ways</h2>
      <Figures kind="ways" table={waysTable(outcome)} />
      <Chart
        title="Allowed in each interval"
        unit={`requests, with a limit of ${whole(limit)}`}
        x={{ label: 'seconds', values: offered.map((_, index) => ((index + 1) * interval) / 1000) }}
        limit={limit}
        series={ways.map(({ name, perInterval }, index) => ({ label: name, color: COLORS[index] ?? '--ink', values: perInterval }))}
        format={whole}
      />
    </section>
  )
}
