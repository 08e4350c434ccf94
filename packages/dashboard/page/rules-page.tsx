import { useState } from 'preact/hooks'
import type { NodeView, PolicyRule, RulesFound, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf } from './address.ts'
import { count, keyName, moment } from './format.ts'
import { versionOf } from './nodes.tsx'
import { useRules } from './use-rules.ts'

/** The most keys of candidate rules to show. */
const KEYS_SHOWN = 20

/**
 * The rules that processes follow, and the effect of candidate rules. The page is read-only, because the source decides who may write
 * rules.
 */
export function RulesPage({ view }: { view: View }) {
  const [search, setSearch] = useState('')
  const [from, setFrom] = useState(0)
  const found = useRules(search, from, view)
  return (
    <>
      <nav class="crumbs">
        <a href="#policies">Overview</a>
      </nav>
      {found === undefined ? (
        <p class="waiting" role="status">
          Loading…
        </p>
      ) : (
        <>
          <div class="charts">
            <VersionList found={found} view={view} />
            <WhoRuns view={view} />
          </div>
          <PolicyList id="rules-now" title="Current policies" policies={found.policies} />
          {found.next !== undefined && <Next next={found.next} view={view} />}
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
              <th scope="col">Who</th>
              <th scope="col">Why</th>
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
                <td data-label="Who">
                  <span class="text">{one.by === undefined ? '–' : visible(one.by)}</span>
                </td>
                <td data-label="Why">
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

function WhoRuns({ view: { nodes } }: { view: View }) {
  return (
    <section class="panel" aria-labelledby="who-runs">
      <h2 id="who-runs">Processes</h2>
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

interface OverridesOptions {
  readonly found: RulesFound
  readonly search: string
  readonly look: (text: string) => void
  readonly turn: (from: number) => void
}

function Overrides({ found: { overrides }, search, look, turn }: OverridesOptions) {
  const { total, found, from, rows } = overrides
  const last = from + rows.length
  return (
    <section class="panel" aria-labelledby="overrides">
      <h2 id="overrides">
        Limits of single keys <span class="badge">{count(total)}</span>
      </h2>
      {total === 0 ? (
        <p class="soft">No key has a limit of its own.</p>
      ) : (
        <>
          <label class="search">
            <span class="hidden">Find a limit of a key</span>
            <input
              type="search"
              placeholder="Find by key or policy"
              value={search}
              onInput={(event) => look(event.currentTarget.value)}
              autoComplete="off"
              spellcheck={false}
            />
          </label>
          {rows.length > 0 && (
            <table>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Policy</th>
                  <th scope="col" class="number">
                    Limit
                  </th>
                  <th scope="col">Until</th>
                </tr>
              </thead>
              <tbody>
                {rows.map(({ policy, key, limit, until }) => (
                  <tr key={`${policy} ${key}`}>
                    <th scope="row">
                      <a class="key" href={addressOf(key)} title={keyName(key)}>
                        {keyName(key)}
                      </a>
                    </th>
                    <td data-label="Policy">
                      <span class="text">{visible(policy)}</span>
                    </td>
                    <td class="number" data-label="Limit">
                      {limit.toLocaleString('en')}
                    </td>
                    <td data-label="Until">{until === null ? 'no end' : moment(until)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <div class="turn">
            <p class="said" role="status">
              {found === 0 ? 'No limit of a key contains this.' : `${from + 1} to ${last} of ${found.toLocaleString('en')}`}
            </p>
            {found > rows.length && (
              <>
                <button type="button" class="quiet" disabled={from === 0} onClick={() => turn(from - 1)}>
                  Back
                </button>
                <button type="button" class="quiet" disabled={last >= found} onClick={() => turn(last)}>
                  Further
                </button>
              </>
            )}
          </div>
        </>
      )}
    </section>
  )
}

function Next({ next, view: { judged } }: { next: NonNullable<RulesFound['next']>; view: View }) {
  return (
    <>
      <PolicyList id="rules-next" title="Candidate policies, not applied" policies={next.policies} />
      <section class="panel" aria-labelledby="judged">
        <h2 id="judged">Effect of the candidate rules</h2>
        <p class="soft">
          For the requests of all processes with a report, since each process loaded the candidate rules.
          {next.overrides > 0 && ` The candidate rules contain ${count(next.overrides)} limits of single keys.`}
        </p>
        <div class="pair">
          <table>
            <thead>
              <tr>
                <th scope="col">Candidate policy</th>
                <th scope="col" class="number">
                  Would allow
                </th>
                <th scope="col" class="number">
                  Would reject
                </th>
              </tr>
            </thead>
            <tbody>
              {judged.policies.map(({ name, allowed, rejected }) => (
                <tr key={name}>
                  <th scope="row">
                    <span class="name">{visible(name)}</span>
                  </th>
                  <td class="number" data-label="Would allow">
                    {count(allowed)}
                  </td>
                  <td class={`number ${rejected > 0 ? 'no' : 'soft'}`} data-label="Would reject">
                    {count(rejected)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {judged.keys.length === 0 ? (
            <p class="soft">The candidate rules would have rejected no key.</p>
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col" class="number">
                    Times rejected
                  </th>
                </tr>
              </thead>
              <tbody>
                {judged.keys.slice(0, KEYS_SHOWN).map(({ policy, key, rejected }) => (
                  <tr key={`${policy} ${key}`}>
                    <th scope="row">
                      <a class="key" href={addressOf(key)} title={keyName(key)}>
                        {keyName(key)}
                      </a>
                      <span class="rule">{visible(policy)}</span>
                    </th>
                    <td class="number" data-label="Times rejected">
                      {count(rejected)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      </section>
    </>
  )
}
