import type { NodeView, View } from '../src/protocol.ts'
import { percent, rate, span } from './format.ts'

/** A node that was not heard of for so long is marked, in milliseconds; after four heartbeats it is gone. */
const LATE = 3_000
const STATES: Readonly<Record<string, string>> = { synced: 'synced', degraded: 'without store', local: 'alone' }

export function Nodes({ view }: { view: View }) {
  const silent = view.nodeCount - view.nodes.length
  return (
    <section class="panel" aria-labelledby="nodes">
      <h2 id="nodes">Nodes</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Lag
            </th>
            <th scope="col" class="number wide">
              Round trip
            </th>
            <th scope="col" class="number">
              Admitted / s
            </th>
            <th scope="col" class="number wide">
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
      {silent > 0 && (
        <p class="soft">
          {silent} more {silent === 1 ? 'node has' : 'nodes have'} not told anything yet.
        </p>
      )}
    </section>
  )
}

function Row({ node }: { node: NodeView }) {
  const { state, age } = node
  const late = age > LATE
  const tone = late || state === 'degraded' ? 'no' : state === 'synced' || state === 'local' ? 'ok' : 'warn'
  return (
    <tr>
      <th scope="row">
        <span class="name">{node.label}</span>
        {node.self && <span class="tag">this one</span>}
        <span class="rule" title={node.node}>
          {node.node.slice(0, 4)} · up {span(node.uptime)}
        </span>
      </th>
      <td>
        <span class={`dot ${tone}`}>{late ? 'not heard of' : (STATES[state] ?? state)}</span>
      </td>
      <td class={`number ${late ? 'no' : ''}`}>{node.self ? '–' : span(age)}</td>
      <td class="number wide">{state === 'local' ? '–' : span(node.roundTrip)}</td>
      <td class="number">{rate(node.admittedRate)}</td>
      <td class="number wide">{percent(node.share)}</td>
    </tr>
  )
}
