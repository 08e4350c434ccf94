import { useEffect, useState } from 'preact/hooks'
import type { Found, KeyEvent, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { type Act, ReasonField, Said, useActing } from './acting.tsx'
import { addressOf, type Place, RANGES } from './address.ts'
import { Audit } from './audit.tsx'
import { Bar } from './bar.tsx'
import { DURATIONS } from './block-form.tsx'
import { Chart } from './chart.tsx'
import { clock, count, keyName, span } from './format.ts'
import { History } from './history.tsx'
import { Limited } from './limited.tsx'
import { leftOf, standing, usedOf } from './standing.ts'
import { Toolbar } from './toolbar.tsx'
import { useAudit, useFound } from './use-answer.ts'

const USED = [{ label: 'Used', index: 1, color: '--accent', fill: true }] as const
const CAUSES: Readonly<Record<string, string>> = {
  manual: 'manually',
  remote: 'by another process',
  exceeded: 'exceeded its limit',
  expired: 'expired',
}

/** All data of one key, and its actions. */
export function KeyPage({ view, place }: { view: View; place: Place }) {
  const { name, mode } = place
  const found = useFound(name, view)
  const acting = useActing()
  const { act } = acting
  const audit = useAudit(view)
  const key = found?.key ?? name
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={addressOf('overview')}>Overview</a>
      </nav>
      <section class="panel key-page" aria-labelledby="this-key">
        <h2 id="this-key">
          <span class="key whole">{keyName(key)}</span>
        </h2>
        {key !== name && <p class="soft">The key is longer than 256 characters, so it is counted by its beginning and a hash.</p>}
        <Said acting={acting} />
        {found === undefined ? <p class="soft">Loading…</p> : <Parts found={found} view={view} act={act} />}
        {view.actions && (
          <>
            <ReasonField acting={acting} />
            <BlockHere name={key} view={view} act={act} />
          </>
        )}
        {found !== undefined && <Note key={key} name={key} note={found.note} actions={view.actions} act={act} />}
      </section>
      <Toolbar place={place} />
      <Limited limited={view.limited.filter((one) => one.key === key)} mode={mode} named={false} />
      {found !== undefined && (
        <div class="pair">
          {found.parts.map(({ policy }) => (
            <History
              key={policy}
              of={{ policy, key }}
              view={view}
              place={place}
              title={`Requests in ${policy}`}
              unit="units allowed, requests rejected, per second"
            />
          ))}
          {found.parts.map(
            ({ policy, samples, limit }) =>
              samples.length > 1 && (
                <Chart
                  key={policy}
                  title={`Used in ${policy}`}
                  unit={`of ${count(limit)}, while a dashboard was open`}
                  points={samples.filter(([time]) => time >= view.time - RANGES[place.range])}
                  series={USED}
                  format={count}
                  whole
                  outages={view.outages}
                />
              ),
          )}
          <Events events={found.events} />
        </div>
      )}
      {audit !== undefined && <Audit entries={audit.filter((entry) => entry.key === key)} />}
    </>
  )
}

function Parts({ found, view, act }: { found: Found; view: View; act: Act }) {
  if (found.parts.length === 0) return <p class="soft">No policy counts this key now.</p>
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Policy</th>
          <th scope="col">Used of the limit</th>
          <th scope="col">Next request</th>
          {view.actions && (
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {found.parts.map((part) => {
          const { policy, limit } = part
          const block = found.blocked.find((one) => one.policy === policy && one.key === found.key)
          const { text, tone } = standing(part)
          return (
            <tr key={policy}>
              <th scope="row">
                <a class="name" href={addressOf('policy', policy)}>
                  {visible(policy)}
                </a>
              </th>
              <td data-label="Used of the limit">
                {block === undefined ? (
                  <Bar {...usedOf(part, view)} limit={limit} />
                ) : (
                  <span class="soft">{part.dryRun ? 'would be blocked' : `blocked for ${leftOf(block)}`}</span>
                )}
              </td>
              <td data-label="Next request" class={tone}>
                {text}
              </td>
              {view.actions && (
                <td class="number">
                  {block !== undefined && (
                    <button type="button" class="quiet" onClick={() => act('unblock', { key: found.key, policy })}>
                      Unblock<span class="hidden"> in {policy}</span>
                    </button>
                  )}{' '}
                  <button type="button" class="quiet" onClick={() => act('reset', { key: found.key, policy })}>
                    Reset<span class="hidden"> in {policy}</span>
                  </button>
                </td>
              )}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function BlockHere({ name, view, act }: { name: string; view: View; act: Act }) {
  const [policy, setPolicy] = useState('')
  const [duration, setDuration] = useState<number>(DURATIONS[1][1])
  const submit = (event: Event): void => {
    event.preventDefault()
    void act('block', { key: name, duration, ...(policy !== '' && { policy }) })
  }
  return (
    <form class="block here" onSubmit={submit} aria-label="Block this key">
      <label>
        <span>Policy</span>
        <select value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
          <option value="">All</option>
          {view.policies.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>For</span>
        <select value={duration} onChange={(event) => setDuration(Number(event.currentTarget.value))}>
          {DURATIONS.map(([text, ms]) => (
            <option key={text} value={ms}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Block</button>
    </form>
  )
}

function Note({ name, note, actions, act }: { name: string; note: string; actions: boolean; act: Act }) {
  const [text, setText] = useState(note)
  // Another person may have changed the note meanwhile.
  useEffect(() => setText(note), [note])
  if (!actions) return note === '' ? null : <p class="note">{note}</p>
  const submit = (event: Event): void => {
    event.preventDefault()
    void act('note', { key: name, note: text })
  }
  return (
    <form class="note-form" onSubmit={submit} aria-label="Note">
      <label>
        <span>Note, kept by this process until it ends</span>
        <input value={text} maxLength={500} onInput={(event) => setText(event.currentTarget.value)} autoComplete="off" />
      </label>
      <button type="submit" class="quiet" disabled={text.trim() === note}>
        Save
      </button>
    </form>
  )
}

function Events({ events }: { events: readonly KeyEvent[] }) {
  return (
    <section class="panel" aria-labelledby="blocks">
      <h2 id="blocks">Blocks</h2>
      {events.length === 0 ? (
        <p class="soft">None since this process started.</p>
      ) : (
        <ol class="log">
          {events.slice(0, 50).map(({ time, kind, policy, cause, durationMs: ms }) => (
            <li key={`${time}${kind}${policy}`}>
              <time dateTime={new Date(time).toISOString()}>{clock(time)}</time>
              <span class={`dot ${kind === 'blocked' ? 'no' : 'ok'}`}>{kind}</span>
              <span class="text">
                in {policy}
                {kind === 'blocked' && ` for ${span(ms)}`}, {CAUSES[cause] ?? cause}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}
