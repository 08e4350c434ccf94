import { useEffect, useState } from 'preact/hooks'
import type { View } from '../src/protocol.ts'
import { usePlace } from './address.ts'
import { Chart } from './chart.tsx'
import { count, latency, percent, rate, span } from './format.ts'
import { Header } from './header.tsx'
import { KeyPage } from './key-page.tsx'
import { Keys } from './keys.tsx'
import { LogList } from './log.tsx'
import { Nodes } from './nodes.tsx'
import { Policies } from './policies.tsx'
import { Reasons } from './reasons.tsx'
import { RulesPage } from './rules-page.tsx'
import { follow, type Live } from './stream.ts'

export function App() {
  const [live, setLive] = useState<Live>({ view: undefined, points: [], earlier: [], connected: false, signedIn: false })
  const { rules, key } = usePlace()
  useEffect(() => follow(setLive), [])
  const { view, connected, signedIn } = live
  return (
    <>
      <Header view={view} connected={connected} signedIn={signedIn} />
      <main class={connected ? '' : 'stale'}>
        {view === undefined ? (
          <p class="waiting" role="status">
            Waiting for the first report…
          </p>
        ) : rules ? (
          <RulesPage view={view} />
        ) : key === undefined ? (
          <Overview view={view} live={live} />
        ) : (
          <KeyPage key={key} name={key} view={view} />
        )}
      </main>
    </>
  )
}

const MINUTE = 60_000
/** The periods of the charts. */
const PERIODS = [
  ['10 min', 10 * MINUTE],
  ['30 min', 30 * MINUTE],
] as const

const REQUESTS = [
  { label: 'Allowed', index: 1, color: '--ok', fill: true },
  { label: 'Rejected', index: 2, color: '--no', fill: true },
] as const
const ROUND_TRIP = [{ label: 'Round trip', index: 3, color: '--accent', fill: true }] as const

function Overview({ view, live }: { view: View; live: Live }) {
  const [period, setPeriod] = useState<number>(PERIODS[1][1])
  const first = live.points[0]?.[0] ?? view.time
  const all = [...live.earlier.filter(([time]) => time < first), ...live.points]
  const points = all.filter(([time]) => time >= view.time - period)
  return (
    <>
      <Figures view={view} />
      <section class="charts" aria-label="Charts">
        <Chart title="Requests over time" unit="per second" points={points} series={REQUESTS} format={rate}>
          <fieldset class="periods">
            <legend class="hidden">Period of the charts</legend>
            {PERIODS.map(([text, ms]) => (
              <button key={text} type="button" class="quiet" aria-pressed={period === ms} onClick={() => setPeriod(ms)}>
                {text}
              </button>
            ))}
          </fieldset>
        </Chart>
        <Chart title="Syncs" unit="slowest process" points={points} series={ROUND_TRIP} format={latency} />
      </section>
      <div class="pair">
        <Reasons view={view} />
        <LogList view={view} />
      </div>
      <Policies view={view} />
      <Keys view={view} />
      <Nodes view={view} />
    </>
  )
}

function Figures({ view }: { view: View }) {
  const [, , , roundTrip] = view.point
  const [allowed, rejected] = sumOf(view)
  const blocked = view.policies.reduce((sum, { blocked, dryRun }) => sum + (dryRun === true ? 0 : blocked), 0)
  const away = view.state === 'storeDown'
  const unsynced = view.policies.reduce((sum, policy) => sum + policy.unsynced, 0)
  const overshoot = Math.max(0, ...view.policies.map((policy) => policy.overshoot))
  const all = allowed + rejected
  return (
    <section class="figures" aria-label="Now">
      <Figure name="Allowed" value={rate(allowed)} unit={away ? 'requests / s, this process' : 'requests / s'} tone="ok" />
      <Figure
        name="Rejected"
        value={rate(rejected)}
        unit={all > 0 ? `/ s · ${percent(rejected / all)}` : '/ s'}
        tone={rejected > 0 ? 'no' : ''}
      />
      <Figure name="Blocked keys" value={count(blocked)} unit="" tone={blocked > 0 ? 'no' : ''} />
      <Figure name="Live processes" value={count(view.nodeCount)} unit={away ? 'before the store went down' : ''} tone="" stale={away} />
      <Figure
        name="Sync"
        value={view.state === 'local' ? 'none' : span(roundTrip ?? 0)}
        unit={view.sync.failures > 0 ? `${count(view.sync.failures)} failed` : view.state === 'local' ? 'one process' : 'round trip'}
        tone=""
        stale={away}
      />
      <Figure
        name="Overshoot"
        value={percent(overshoot)}
        unit={`${count(unsynced)} unsynced`}
        tone={overshoot > 0.1 ? 'no' : ''}
        stale={away}
      />
    </section>
  )
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
