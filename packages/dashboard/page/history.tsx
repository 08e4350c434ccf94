import type { View } from '../src/protocol.ts'
import { type Place, RANGES } from './address.ts'
import { Chart } from './chart.tsx'
import { rate } from './format.ts'
import type { ActionBody } from './stream.ts'
import { useSeries } from './use-answer.ts'

export const REQUESTS = [
  { label: 'Allowed', index: 1, color: '--ok', fill: true },
  { label: 'Rejected', index: 2, color: '--no', fill: true, dashed: true },
] as const

interface HistoryProps {
  readonly of: ActionBody
  readonly view: View
  readonly place: Place
  readonly unit: string
  readonly title?: string
}

/** The requests of a policy, a process or a key over time. */
export function History({ of, view, place, unit, title = 'Requests over time' }: HistoryProps) {
  const points = useSeries(of, view).filter(([time]) => time >= view.time - RANGES[place.range])
  return <Chart title={title} unit={unit} points={points} series={REQUESTS} format={rate} outages={view.outages} />
}

/** A list of facts with their names. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: string])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt> <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
