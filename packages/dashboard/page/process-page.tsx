import type { NodeView, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf, type Place } from './address.ts'
import { failures } from './figures.tsx'
import { percent, rate, span } from './format.ts'
import { Facts, History } from './history.tsx'
import { LogList } from './log.tsx'
import { STATES, versionOf } from './nodes.tsx'
import { Toolbar } from './toolbar.tsx'

/** One process: its state, its requests over time and its events. */
export function ProcessPage({ view, place }: { view: View; place: Place }) {
  const node = view.nodes.find((one) => one.node === place.name)
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={addressOf('overview')}>Overview</a>
      </nav>
      {node === undefined ? (
        <section class="panel" aria-labelledby="this-process">
          <h2 id="this-process">{visible(place.name)}</h2>
          <p class="soft">No live process has this id. It may have ended.</p>
        </section>
      ) : (
        <Page node={node} view={view} place={place} />
      )}
    </>
  )
}

function Page({ node, view, place }: { node: NodeView; view: View; place: Place }) {
  return (
    <>
      <section class={node.stale ? 'panel stale' : 'panel'} aria-labelledby="this-process">
        <h2 id="this-process">
          {visible(node.label)} {node.self && <span class="tag">this one</span>}
        </h2>
        <Facts
          facts={[
            ['Id', node.node],
            ['State', STATES[node.state] ?? node.state],
            ['Last seen', node.self ? 'now' : `${span(node.ageMs)} ago`],
            ['Up', span(node.uptimeMs)],
            ['Rules', versionOf(node)],
            ['Allowed', `${rate(node.allowedRate)} / s`],
            ['Rejected', `${rate(node.rejectedRate)} / s`],
            ['Share', percent(node.share)],
            ['Round trip', node.state === 'local' ? '–' : span(node.roundTripMs)],
            ['Syncs', failures(node.failuresLastHour, node.failures) || 'none failed'],
          ]}
        />
      </section>
      <Toolbar place={place} />
      <div class="charts">
        <History of={{ node: node.node }} view={view} place={place} unit="per second" />
        <LogList log={view.log.filter(({ process }) => process === node.label)} mode={place.mode} />
      </div>
    </>
  )
}
