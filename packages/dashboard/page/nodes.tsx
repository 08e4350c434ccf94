import type { NodeView, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { RULES } from './address.ts'
import { percent, rate, span } from './format.ts'

/** Milliseconds. A process without a report for this long is marked as late. After four heartbeats it is removed. */
const LATE = 3_000
const STATES: Readonly<Record<string, string>> = { synced: 'synced', storeDown: 'without store', local: 'alone' }

export function Nodes({ view }: { view: View }) {
  const silent = view.nodeCount - view.nodes.length
  const versions = versionsOf(view.nodes)
  return (
    <section class="panel" aria-labelledby="nodes">
      <h2 id="nodes">Processes</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Lag
            </th>
            <th scope="col" class="number">
              Round trip
            </th>
            <th scope="col" class="number">
              Allowed / s
            </th>
            <th scope="col" class="number">
              Rejected / s
            </th>
            <th scope="col" class="number">
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {view.nodes.map((node) => (
            <Row key={node.node} node={node} />
          ))}
        </tbody>
      </table>
      {versions.length > 1 && (
        <p class="soft">
          The processes use different <a href={RULES}>rules</a>: {versions.join(', ')}. They share counts, and each applies its own limits.
        </p>
      )}
      {silent > 0 && (
        <p class="soft">
          {silent} more {silent === 1 ? 'process has' : 'processes have'} not reported yet.
        </p>
      )}
    </section>
  )
}

/** The version with its digest, because two documents may have the same version. */
export function versionOf({ rules }: NodeView): string {
  return rules?.version === undefined ? 'from code' : `${rules.version} (${rules.digest})`
}

/** The versions in use, with their number of processes. */
function versionsOf(nodes: readonly NodeView[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const node of nodes) if (node.rules !== undefined) counts.set(versionOf(node), (counts.get(versionOf(node)) ?? 0) + 1)
  return [...counts].map(([version, many]) => `${version} in ${many} ${many === 1 ? 'process' : 'processes'}`)
}

function Row({ node }: { node: NodeView }) {
  const { state, ageMs: age } = node
  const late = age > LATE
  const tone = late || state === 'storeDown' ? 'no' : state === 'synced' || state === 'local' ? 'ok' : 'warn'
  return (
    <tr class={node.stale ? 'stale' : ''}>
      <th scope="row">
        <span class="name">{node.label}</span>
        {node.self && <span class="tag">this one</span>}
        <span class="rule" title={node.node}>
          {node.node.slice(0, 4)} · up {span(node.uptimeMs)}
          {node.rules !== undefined && ` · rules ${versionOf(node)}`}
        </span>
        {node.rules?.rejected !== undefined && (
          <span class="rule no">
            rejected version {node.rules.rejected.version ?? '?'}: {visible(node.rules.rejected.problem)}
          </span>
        )}
        {node.rules?.away !== undefined && <span class="rule no">rules can't be read: {visible(node.rules.away)}</span>}
      </th>
      <td data-label="State">
        <span class={`dot ${tone}`}>{late ? 'no report' : (STATES[state] ?? state)}</span>
      </td>
      <td class={`number ${late ? 'no' : ''}`} data-label="Lag">
        {node.self ? '–' : span(age)}
      </td>
      <td class="number" data-label="Round trip">
        {state === 'local' ? '–' : span(node.roundTripMs)}
      </td>
      <td class="number" data-label="Allowed / s">
        {rate(node.allowedRate)}
      </td>
      <td class="number" data-label="Rejected / s">
        {rate(node.rejectedRate)}
      </td>
      <td class="number" data-label="Share">
        {percent(node.share)}
      </td>
    </tr>
  )
}
