import type { BlockedKey } from '@weir/core/inspect'
import { useState } from 'preact/hooks'
import type { Found, View } from '../src/protocol.ts'
import { useActing } from './acting.ts'
import { addressOf } from './address.ts'
import { Bar } from './bar.tsx'
import { BlockForm } from './block-form.tsx'
import { keyName, span } from './format.ts'
import { standing, usedOf } from './standing.ts'
import { useFound } from './use-found.ts'

const SHOWN = 12

/** Most used and blocked keys, with a search and actions. */
export function Keys({ view }: { view: View }) {
  const [search, setSearch] = useState('')
  const { said, act } = useActing()
  const found = useFound(search === '' ? undefined : search, view)
  const dry = new Set(view.policies.flatMap(({ name, dryRun }) => (dryRun === true ? [name] : [])))
  const away = view.state === 'storeDown'
  const matches = ({ key }: { key: string }): boolean => search === '' || key.toLowerCase().includes(search.toLowerCase())
  const blocked = merge(view.blocked.filter(matches), found?.blocked ?? [])
  const top = view.top.filter(matches)
  return (
    <section class="keys" aria-labelledby="keys">
      <div class="keys-head">
        <h2 id="keys">Keys</h2>
        <label class="search">
          <span class="hidden">Find a key</span>
          <input
            type="search"
            placeholder="Find a key"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
            autoComplete="off"
            spellcheck={false}
          />
        </label>
        <p class="said" role="status">
          {said}
        </p>
      </div>
      {search !== '' && found !== undefined && (
        <Answer search={search} found={found} view={view} reset={(policy) => act('reset', { key: search, policy })} />
      )}
      <div class="pair">
        <section class={away ? 'panel stale' : 'panel'} aria-labelledby="hot">
          <h2 id="hot">
            Most used <span class="badge">{top.length}</span>
          </h2>
          {away && <p class="soft">Counts of other processes are from before the store went down.</p>}
          {top.length === 0 ? (
            <p class="soft">{search === '' ? 'No key is in use.' : 'None of the most used keys.'}</p>
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Used of the limit</th>
                </tr>
              </thead>
              <tbody>
                {top.slice(0, SHOWN).map(({ policy, key, used, limit }) => (
                  <tr key={`${policy} ${key}`}>
                    <KeyCell policy={policy} name={key} note={view.notes[key]} />
                    <td data-label="Used of the limit">
                      <Bar used={used} limit={limit} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </section>
        <section class="panel" aria-labelledby="blocked">
          <h2 id="blocked">
            Blocked <span class="badge">{search === '' ? countOf(view) : blocked.filter(({ policy }) => !dry.has(policy)).length}</span>
          </h2>
          {view.actions && <BlockForm policies={view.policies.map(({ name }) => name)} block={(body) => act('block', body)} />}
          {blocked.length === 0 ? (
            <p class="soft">{search === '' ? 'No key is blocked.' : 'No blocked key contains this.'}</p>
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col" class="number">
                    Time left
                  </th>
                  {view.actions && (
                    <th scope="col">
                      <span class="hidden">Action</span>
                    </th>
                  )}
                </tr>
              </thead>
              <tbody>
                {blocked.slice(0, SHOWN).map((one) => (
                  <BlockedRow
                    key={`${one.policy} ${one.key}`}
                    one={one}
                    note={view.notes[one.key]}
                    dryRun={dry.has(one.policy)}
                    actions={view.actions}
                    unblock={() => act('unblock', { key: one.key, policy: one.policy })}
                  />
                ))}
              </tbody>
            </table>
          )}
          {blocked.length > SHOWN && <p class="soft">And {blocked.length - SHOWN} more: search for one.</p>}
        </section>
      </div>
    </section>
  )
}

function KeyCell({ policy, name, note }: { policy: string; name: string; note: string | undefined }) {
  return (
    <th scope="row">
      <a class="key" href={addressOf(name)} title={keyName(name)}>
        {keyName(name)}
      </a>
      <span class="rule">{policy}</span>
      {note !== undefined && <span class="note">{note}</span>}
    </th>
  )
}

/** Number of blocked keys. A dry run rejects no request, so its keys don't count. */
function countOf({ policies }: View): number {
  return policies.reduce((sum, { blocked, dryRun }) => sum + (dryRun === true ? 0 : blocked), 0)
}

interface BlockedRowProps {
  readonly one: BlockedKey
  readonly note: string | undefined
  readonly dryRun: boolean
  readonly actions: boolean
  readonly unblock: () => Promise<void>
}

function BlockedRow({ one, note, dryRun, actions, unblock }: BlockedRowProps) {
  const [busy, setBusy] = useState(false)
  const clicked = async (): Promise<void> => {
    setBusy(true)
    await unblock()
    setBusy(false)
  }
  const about = `${one.policy}${one.cause === 'manual' ? ', manually' : ''}${dryRun ? ', not rejected because of the dry run' : ''}`
  return (
    <tr class={dryRun ? 'stale' : ''}>
      <KeyCell policy={about} name={one.key} note={note} />
      <td class="number" data-label="Time left">
        {span(one.remainingMs)}
      </td>
      {actions && (
        <td class="number">
          <button type="button" class="quiet" disabled={busy} onClick={clicked} aria-label={`Unblock ${keyName(one.key)} in ${one.policy}`}>
            Unblock
          </button>
        </td>
      )}
    </tr>
  )
}

interface AnswerOptions {
  search: string
  found: Found
  view: View
  reset: (policy: string) => Promise<void>
}

/** The server's data of exactly this key. */
function Answer({ search, found, view, reset }: AnswerOptions) {
  return (
    <div class="panel answer">
      <h3>
        <a class="key" href={addressOf(search)}>
          {keyName(search)}
        </a>
      </h3>
      {found.parts.length === 0 && <p class="soft">No policy counts by keys.</p>}
      <ul>
        {found.parts.map((part) => {
          const { policy, limit } = part
          const { text, tone } = standing(part)
          return (
            <li key={policy}>
              <b>{policy}</b> <Bar used={usedOf(part, view)} limit={limit} /> <span class={tone}>{text}</span>
              {view.actions && (
                <button type="button" class="quiet" onClick={() => reset(policy)} aria-label={`Reset ${keyName(search)} in ${policy}`}>
                  Reset
                </button>
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

function merge(first: readonly BlockedKey[], second: readonly BlockedKey[]): BlockedKey[] {
  const known = new Set(first.map(({ policy, key }) => `${policy} ${key}`))
  return [...first, ...second.filter(({ policy, key }) => !known.has(`${policy} ${key}`))]
}
