import type { CurvesOutcome } from '../runs/curves.ts'
import { curvesTable, WRITTEN } from '../tables/tables.ts'
import { Chart } from './chart.tsx'
import { Figures } from './figures.tsx'

const COLORS = ['--no', '--warn', '--ok', '--accent', '--soft', '--ink'] as const

interface CurvesProps {
  readonly outcome: CurvesOutcome
  /** The chart alone. */
  readonly embedded: boolean
}

/** Limiters side by side: their curves, and a table of what came out. */
export function Curves({ outcome, embedded }: CurvesProps) {
  const { title, unit, x, y, limit, rows } = outcome
  return (
    <section class="panel results" aria-label={title}>
      <Chart
        title={title}
        unit={unit}
        x={x}
        limit={limit}
        series={rows.map(({ name, curve }, index) => ({ label: name, color: COLORS[index] ?? '--ink', values: curve }))}
        format={WRITTEN[y]}
      />
      {!embedded && <Figures table={curvesTable(outcome)} />}
    </section>
  )
}
