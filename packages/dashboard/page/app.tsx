import { useEffect, useState } from 'preact/hooks'
import type { View } from '../src/protocol.ts'
import { type Place, RANGES, usePlace } from './address.ts'
import { Audit } from './audit.tsx'
import { Chart } from './chart.tsx'
import { Figures } from './figures.tsx'
import { keyName, latency, rate } from './format.ts'
import { Header, stateOf } from './header.tsx'
import { REQUESTS } from './history.tsx'
import { Impact } from './impact.tsx'
import { KeyPage } from './key-page.tsx'
import { Keys } from './keys.tsx'
import { Limited } from './limited.tsx'
import { LogList } from './log.tsx'
import { Nodes } from './nodes.tsx'
import { Policies } from './policies.tsx'
import { PolicyPage } from './policy-page.tsx'
import { ProcessPage } from './process-page.tsx'
import { Reasons } from './reasons.tsx'
import { RulesPage } from './rules-page.tsx'
import { follow, type Live } from './stream.ts'
import { Toolbar } from './toolbar.tsx'
import { useAudit } from './use-answer.ts'

export function App() {
  const [live, setLive] = useState<Live>({ view: undefined, points: [], earlier: [], connected: false, signedIn: false })
  const place = usePlace()
  useEffect(() => follow(setLive), [])
  const { view, connected, signedIn } = live
  useTitle(place, view, connected)
  return (
    <>
      <Header view={view} connected={connected} signedIn={signedIn} />
      <main class={connected ? '' : 'stale'}>
        {view === undefined ? (
          <p class="waiting" role="status">
            Waiting for the first report…
          </p>
        ) : (
          <Page view={view} live={live} place={place} />
        )}
      </main>
    </>
  )
}

function Page({ view, live, place }: { view: View; live: Live; place: Place }) {
  switch (place.page) {
    case 'rules':
      return <RulesPage view={view} />
    case 'key':
      return <KeyPage key={place.name} view={view} place={place} />
    case 'policy':
      return <PolicyPage key={place.name} view={view} place={place} />
    case 'process':
      return <ProcessPage key={place.name} view={view} place={place} />
    case 'overview':
      return <Overview view={view} live={live} place={place} />
  }
}

const LONGEST_TITLE = 60

/** The state and the page in the title, so that a tab in the background shows them. */
function useTitle({ page, name }: Place, view: View | undefined, connected: boolean): void {
  const subject =
    page === 'overview' ? '' : page === 'rules' ? 'Rules · ' : `${keyName(nameOf(page, name, view)).slice(0, LONGEST_TITLE)} · `
  const title = view === undefined ? 'Weir' : `${subject}${stateOf(view, connected).text} · Weir`
  useEffect(() => {
    document.title = title
  }, [title])
}

function nameOf(page: Place['page'], name: string, view: View | undefined): string {
  return page === 'process' ? (view?.nodes.find(({ node }) => node === name)?.label ?? name) : name
}

const ROUND_TRIP = [{ label: 'Round trip', index: 3, color: '--accent', fill: true }] as const

function Overview({ view, live, place }: { view: View; live: Live; place: Place }) {
  const first = live.points[0]?.[0] ?? view.time
  const all = [...live.earlier.filter(([time]) => time < first), ...live.points]
  const points = all.filter(([time]) => time >= view.time - RANGES[place.range])
  const audit = useAudit(view)
  return (
    <>
      <Figures view={view} />
      <Toolbar place={place} />
      <Limited limited={view.limited} mode={place.mode} />
      {place.mode === 'candidate' && <Impact judged={view.judged} />}
      <section class="charts" aria-label="Charts">
        <Chart title="Requests over time" unit="per second" points={points} series={REQUESTS} format={rate} outages={view.outages} />
        <Chart title="Syncs" unit="slowest process" points={points} series={ROUND_TRIP} format={latency} outages={view.outages} />
      </section>
      <div class="pair">
        <Reasons view={view} />
        <LogList log={view.log} mode={place.mode} />
      </div>
      <Policies view={view} />
      <Keys view={view} place={place} />
      <Nodes view={view} />
      {audit !== undefined && <Audit entries={audit} />}
    </>
  )
}
