import type { CurvesOutcome } from '../runs/curves.ts'
import { WRITTEN } from '../tables/tables.ts'
import { Chart } from './chart.tsx'
import { Played } from './played.tsx'

const COLORS = ['--no', '--warn', '--ok', '--accent', '--soft', '--ink'] as const
/** Steps from left to right. */
const STEPS = 60

interface CurvesProps {
  readonly outcome: CurvesOutcome
  /** Shows only the chart. */
  readonly embedded: boolean
}

/** Limiters side by side, as curves. */
export function Curves({ outcome, embedded }: CurvesProps) {
  const { title, unit, x, y, limit, rows } = outcome
  const length = ((x.values.at(-1) ?? 0) - (x.values[0] ?? 0)) * 1000
  return (
    <section class="panel" aria-label={title}>
      <Played key={length} length={length} step={length / STEPS} embedded={embedded}>
        <Chart
          title={title}
          unit={unit}
          x={x}
          limit={limit}
          series={rows.map(({ name, curve }, index) => ({ label: name, color: COLORS[index] ?? '--ink', values: curve }))}
          format={WRITTEN[y]}
        />
      </Played>
    </section>
  )
}
