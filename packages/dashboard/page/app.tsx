import { useEffect, useState } from 'preact/hooks'
import { Chart } from './chart.tsx'
import { count, percent, rate, span } from './format.ts'
import { Header } from './header.tsx'
import { Keys } from './keys.tsx'
import { LogList } from './log.tsx'
import { Nodes } from './nodes.tsx'
import { Policies } from './policies.tsx'
import { follow, type Live } from './stream.ts'

export function App() {
  const [live, setLive] = useState<Live>({ view: undefined, points: [], connected: false, signedIn: false })
  useEffect(() => follow(setLive), [])
  const { view, points, connected, signedIn } = live
  return (
    <>
      <Header view={view} connected={connected} signedIn={signedIn} />
      <main>
        {view === undefined ? (
          <p class="waiting" role="status">
            Waiting for the first report…
          </p>
        ) : (
          <>
            <Figures view={view} />
            <section class="charts" aria-label="Charts">
              <Chart
                title="Requests over time"
                unit="per second"
                points={points}
                series={[
                  { label: 'Admitted (units)', index: 1, color: '--ok', fill: true },
                  { label: 'Refused', index: 2, color: '--no', fill: true },
                ]}
                format={rate}
              />
              <Chart
                title="Exchange of counts"
                unit="slowest node"
                points={points}
                series={[{ label: 'Round trip', index: 3, color: '--accent', fill: true }]}
                format={span}
              />
            </section>
            <Policies view={view} />
            <Keys view={view} />
            <div class="pair">
              <Nodes view={view} />
              <LogList view={view} />
            </div>
          </>
        )}
      </main>
    </>
  )
}

function Figures({ view }: { view: NonNullable<Live['view']> }) {
  const [, admitted, refused, roundTrip] = view.point
  const blocked = view.policies.reduce((sum, policy) => sum + policy.blocked, 0)
  const unsynced = view.policies.reduce((sum, policy) => sum + policy.unsynced, 0)
  const overshoot = Math.max(0, ...view.policies.map((policy) => policy.overshoot))
  const all = admitted + refused
  return (
    <section class="figures" aria-label="Now">
      <Figure name="Admitted" value={rate(admitted)} unit="units / s" tone="ok" />
      <Figure
        name="Refused"
        value={rate(refused)}
        unit={all > 0 ? `/ s · ${percent(refused / all)}` : '/ s'}
        tone={refused > 0 ? 'no' : ''}
      />
      <Figure name="Blocked keys" value={count(blocked)} unit="" tone={blocked > 0 ? 'no' : ''} />
      <Figure name="Live nodes" value={count(view.nodeCount)} unit="" tone="" />
      <Figure
        name="Exchange"
        value={view.state === 'local' ? 'none' : span(roundTrip)}
        unit={view.sync.failures > 0 ? `${count(view.sync.failures)} failed` : view.state === 'local' ? 'one process' : 'round trip'}
        tone=""
      />
      <Figure name="Overshoot" value={percent(overshoot)} unit={`${count(unsynced)} unsynced`} tone={overshoot > 0.1 ? 'no' : ''} />
    </section>
  )
}

function Figure({ name, value, unit, tone }: { name: string; value: string; unit: string; tone: string }) {
  return (
    <div class="figure">
      <h2>{name}</h2>
      <p>
        <strong class={tone}>{value}</strong> <span>{unit}</span>
      </p>
    </div>
  )
}
