import type { View } from '../src/protocol.ts'
import { count, percent, rate, span } from './format.ts'

/** The newest figures. Health comes first, because it decides how far the others can be trusted. */
export function Figures({ view }: { view: View }) {
  const { nodeCount, reported, policies, sync } = view
  const [, , , roundTrip] = view.point
  const [allowed, rejected] = sumOf(view)
  const enforced = policies.filter(({ mode }) => mode === 'enforced')
  const blocked = enforced.reduce((sum, { blocked }) => sum + blocked, 0)
  const limited = new Set(view.limited.flatMap(({ mode, lastMinute, key }) => (mode === 'enforced' && lastMinute > 0 ? [key] : []))).size
  const storeDown = view.state === 'storeDown'
  const measured = Math.max(0, ...enforced.map(({ measuredOvershoot }) => measuredOvershoot))
  const possible = Math.max(0, ...enforced.map(({ overshoot }) => overshoot))
  const all = allowed + rejected
  const part = reported < nodeCount ? `${reported} of ${nodeCount}` : ''
  const of = storeDown ? ', this process' : part === '' ? '' : `, ${part} processes`
  return (
    <section class="figures" aria-label="Now">
      <Figure
        name="Live processes"
        value={part === '' ? count(nodeCount) : part}
        unit={storeDown ? 'before the store went down' : part === '' ? 'all reported' : 'have reported'}
        tone={part === '' ? '' : 'warn'}
        stale={storeDown}
      />
      <Figure
        name="Sync"
        value={view.state === 'local' ? 'none' : span(roundTrip ?? 0)}
        unit={view.state === 'local' ? 'one process' : failures(sync.failuresLastHour, sync.failures) || 'round trip'}
        tone={sync.failuresLastHour > 0 ? 'warn' : ''}
        stale={storeDown}
      />
      <Figure name="Allowed" value={rate(allowed)} unit={`requests / s${of}`} tone="ok" />
      <Figure
        name="Rejected"
        value={rate(rejected)}
        unit={all > 0 ? `/ s · ${percent(rejected / all)}${of}` : '/ s'}
        tone={rejected > 0 ? 'no' : ''}
      />
      <Figure name="Limited keys" value={count(limited)} unit="in the last minute" tone={limited > 0 ? 'no' : ''} />
      <Figure name="Blocked keys" value={count(blocked)} unit="cooldown or manual" tone={blocked > 0 ? 'no' : ''} />
      <Figure
        name="Overshoot"
        value={percent(measured)}
        unit={`last hour · ${percent(possible)} possible now`}
        tone={measured > 0.1 ? 'no' : ''}
        stale={storeDown}
      />
    </section>
  )
}

/** Failed syncs of the last hour, and since the start. Empty without a failure. */
export function failures(lastHour: number, total: number): string {
  return total > 0 ? `${count(lastHour)} failed last hour, ${count(total)} in total` : ''
}

/** Requests allowed and rejected per second, of all processes with a report. */
function sumOf({ nodes }: View): readonly [allowed: number, rejected: number] {
  return [nodes.reduce((sum, { allowedRate }) => sum + allowedRate, 0), nodes.reduce((sum, { rejectedRate }) => sum + rejectedRate, 0)]
}

interface FigureProps {
  readonly name: string
  readonly value: string
  readonly unit: string
  readonly tone: string
  /** Whether the value is from before the store went down. */
  readonly stale?: boolean
}

function Figure({ name, value, unit, tone, stale = false }: FigureProps) {
  return (
    <div class={stale ? 'figure stale' : 'figure'}>
      <h2>{name}</h2>
      <p>
        <strong class={tone}>{value}</strong> <span>{unit}</span>
      </p>
    </div>
  )
}
