import { useState } from 'preact/hooks'
import type { NodeView, PolicyRule, RulesFound, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf } from './address.ts'
import { moment } from './format.ts'
import { Impact } from './impact.tsx'
import { versionOf } from './nodes.tsx'
import { Overrides } from './overrides.tsx'
import { useRules } from './use-answer.ts'

/**
 * The rules that processes follow, and the impact of candidate rules. The page is read-only, because the source decides who may write
 * rules.
 */
export function RulesPage({ view }: { view: View }) {
  const [search, setSearch] = useState('')
  const [from, setFrom] = useState(0)
  const found = useRules(search, from, view)
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={addressOf('overview')}>Overview</a>
      </nav>
      {found === undefined ? (
        <p class="waiting" role="status">
          Loading…
        </p>
      ) : (
        <>
          <div class="charts">
            <VersionList found={found} view={view} />
            <Running view={view} />
          </div>
          <PolicyList id="rules-now" title="Current policies" policies={found.policies} />
          {found.next !== undefined && (
            <>
              <PolicyList id="rules-next" title="Candidate (dry run)" policies={found.next.policies} />
              <Impact judged={view.judged} overrides={found.next.overrides} />
            </>
          )}
          <Overrides
            found={found}
            search={search}
            look={(text) => {
              setSearch(text)
              setFrom(0)
            }}
            turn={setFrom}
          />
        </>
      )}
    </>
  )
}

function VersionList({ found: { source, versions }, view }: { found: RulesFound; view: View }) {
  const self = view.nodes.find((node) => node.self)
  return (
    <section class="panel" aria-labelledby="versions">
      <h2 id="versions">Versions</h2>
      {source === undefined ? (
        <p class="soft">This process follows no rules. Its policies are in code.</p>
      ) : (
        <p class="soft">
          <span class="text">{visible(source)}</span>
        </p>
      )}
      {versions.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">When</th>
              <th scope="col">Author</th>
              <th scope="col">Reason</th>
              <th scope="col" class="number">
                Processes
              </th>
            </tr>
          </thead>
          <tbody>
            {versions.map((one, place) => (
              // A source may contain the same document twice, in two versions.
              <tr key={`${one.digest} ${versions.length - place}`}>
                <th scope="row">
                  <span class="name">{one.version ?? '?'}</span>
                  {one.digest === self?.rules?.digest && <span class="tag">current</span>}
                  <span class="rule">{one.digest}</span>
                </th>
                <td data-label="When">{whenOf(one)}</td>
                <td data-label="Author">
                  <span class="text">{one.by === undefined ? '–' : visible(one.by)}</span>
                </td>
                <td data-label="Reason">
                  <span class="text">{one.why === undefined ? '–' : visible(one.why)}</span>
                </td>
                <td class="number" data-label="Processes">
                  {view.nodes.filter(({ rules }) => rules?.digest === one.digest).length}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

function whenOf({ at, since }: RulesFound['versions'][number]): string {
  if (at === undefined) return since === undefined ? '–' : `${moment(since)}, in this process`
  const time = Date.parse(at)
  return Number.isNaN(time) ? visible(at) : moment(time)
}

function Running({ view: { nodes } }: { view: View }) {
  return (
    <section class="panel" aria-labelledby="running">
      <h2 id="running">Versions by process</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.node} class={node.stale ? 'stale' : ''}>
              <th scope="row">
                <span class="name">{node.label}</span>
                {node.self && <span class="tag">this one</span>}
              </th>
              <td data-label="Version">
                <VersionOf node={node} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function VersionOf({ node }: { node: NodeView }) {
  const { rules } = node
  if (rules === undefined) return <span class="soft">follows no rules</span>
  return (
    <>
      {versionOf(node)}
      {rules.from === 'file' && <span class="tag">from its file of the last valid rules</span>}
      {rules.rejected !== undefined && (
        <span class="rule no text">
          rejected version {rules.rejected.version ?? '?'}: {visible(rules.rejected.problem)}
        </span>
      )}
      {rules.away !== undefined && <span class="rule no text">can't read the source: {visible(rules.away)}</span>}
    </>
  )
}

function PolicyList({ id, title, policies }: { id: string; title: string; policies: readonly PolicyRule[] }) {
  return (
    <section class="panel" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {policies.length === 0 ? (
        <p class="soft">The rules contain no policies. The overview lists the policies in code.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col">Options</th>
            </tr>
          </thead>
          <tbody>
            {policies.map((policy) => (
              <tr key={policy.name}>
                <th scope="row">
                  <span class="name">{visible(policy.name)}</span>
                </th>
                <td data-label="Options">
                  <Options policy={policy} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

function Options({ policy: { options } }: { policy: PolicyRule }) {
  return (
    <dl class="options">
      {options.map(([option, text]) => (
        <div key={option}>
          <dt>{visible(option)}</dt> <dd>{visible(text)}</dd>
        </div>
      ))}
    </dl>
  )
}
