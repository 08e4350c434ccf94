import type { NodeView, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf } from './address.ts'
import { failures } from './figures.tsx'
import { many, percent, rate, span } from './format.ts'

/** Milliseconds. A process without a report for this long is marked as late. After four heartbeats it is removed. */
const LATE = 3_000
export const STATES: Readonly<Record<string, string>> = { synced: 'synced', storeDown: 'without store', local: 'alone' }

export function Nodes({ view }: { view: View }) {
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
              Last seen
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
          The processes use different <a href={addressOf('rules')}>rules</a>: {versions.join(', ')}. They share counts, and each applies its
          own limits.
        </p>
      )}
      {view.reported < view.nodeCount && (
        <p class="soft">
          {view.reported} of {many(view.nodeCount, 'process', 'processes')} reported. The rates are their sum.
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
  return [...counts].map(([version, number]) => `${version} in ${many(number, 'process', 'processes')}`)
}

function Row({ node }: { node: NodeView }) {
  const { state, ageMs: age } = node
  const late = age > LATE
  const tone = late || state === 'storeDown' ? 'no' : state === 'synced' || state === 'local' ? 'ok' : 'warn'
  return (
    <tr class={node.stale ? 'stale' : ''}>
      <th scope="row">
        <a class="name" href={addressOf('process', node.node)}>
          {visible(node.label)}
        </a>
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
      <td class={`number ${late ? 'no' : ''}`} data-label="Last seen">
        {node.self ? 'now' : `${span(age)} ago`}
      </td>
      <td class="number" data-label="Round trip">
        {state === 'local' ? '–' : span(node.roundTripMs)}
        {node.failures > 0 && <span class="rule">{failures(node.failuresLastHour, node.failures)}</span>}
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
