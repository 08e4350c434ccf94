import type { BlockedKey } from '@weir/core/inspect'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Found, View } from '../src/protocol.ts'
import { Bar } from './bar.tsx'
import { BlockForm } from './block-form.tsx'
import { keyName, span } from './format.ts'
import { send } from './stream.ts'

const SHOWN = 12
const DONE = { block: 'Blocked', unblock: 'Unblocked', reset: 'Reset' } as const

/** Hot and blocked keys, with a search, and what can be done about them. */
export function Keys({ view }: { view: View }) {
  const [search, setSearch] = useState('')
  const [said, say] = useState('')
  const found = useFound(search, view)
  const act = async (action: keyof typeof DONE, body: { key: string; policy?: string; duration?: number }): Promise<void> => {
    try {
      await send(action, body)
      say(`${DONE[action]} ${keyName(body.key)}.`)
    } catch (error) {
      say(error instanceof Error ? error.message : String(error))
    }
  }
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
        <Answer search={search} found={found} actions={view.actions} reset={(policy) => act('reset', { key: search, policy })} />
      )}
      <div class="pair">
        <section class="panel" aria-labelledby="hot">
          <h2 id="hot">
            Hottest <span class="badge">{top.length}</span>
          </h2>
          {top.length === 0 ? (
            <p class="soft">{search === '' ? 'No key is in use.' : 'None of the hottest keys.'}</p>
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
                    <KeyCell policy={policy} name={key} />
                    <td>
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
            Blocked{' '}
            <span class="badge">{search === '' ? view.policies.reduce((sum, policy) => sum + policy.blocked, 0) : blocked.length}</span>
          </h2>
          {view.actions && <BlockForm policies={view.policies.map(({ name }) => name)} block={(body) => act('block', body)} />}
          {blocked.length === 0 ? (
            <p class="soft">{search === '' ? 'No key is blocked.' : 'No blocked key holds this.'}</p>
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

function KeyCell({ policy, name }: { policy: string; name: string }) {
  return (
    <th scope="row">
      <span class="key" title={name}>
        {keyName(name)}
      </span>
      <span class="rule">{policy}</span>
    </th>
  )
}

function BlockedRow({ one, actions, unblock }: { one: BlockedKey; actions: boolean; unblock: () => Promise<void> }) {
  const [busy, setBusy] = useState(false)
  const clicked = async (): Promise<void> => {
    setBusy(true)
    await unblock()
    setBusy(false)
  }
  return (
    <tr>
      <KeyCell policy={one.cause === 'manual' ? `${one.policy}, by hand` : one.policy} name={one.key} />
      <td class="number">{span(one.remaining)}</td>
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

const REASONS: Readonly<Record<string, string>> = {
  ok: 'would be admitted',
  limit: 'at its limit',
  cooldown: 'exceeded its limit',
  blocked: 'blocked by hand',
  degraded: 'refused while the store is away',
  overflow: 'without room in the table',
}

interface AnswerOptions {
  search: string
  found: Found
  actions: boolean
  reset: (policy: string) => Promise<void>
}

/** What the server knows of exactly this key. */
function Answer({ search, found, actions, reset }: AnswerOptions) {
  return (
    <div class="panel answer">
      <h3>
        <span class="key">{search}</span>
      </h3>
      {found.parts.length === 0 && <p class="soft">No policy counts by keys.</p>}
      <ul>
        {found.parts.map(({ policy, limit, remaining, reason, retryAfter }) => (
          <li key={policy}>
            <b>{policy}</b> <Bar used={Math.max(0, limit - remaining)} limit={limit} />{' '}
            <span class={reason === 'ok' ? 'ok' : 'no'}>
              {REASONS[reason] ?? reason}
              {retryAfter > 0 && `, ${span(retryAfter)} left`}
            </span>
            {actions && (
              <button type="button" class="quiet" onClick={() => reset(policy)} aria-label={`Reset ${keyName(search)} in ${policy}`}>
                Reset
              </button>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}

function useFound(search: string, view: View): Found | undefined {
  const [found, setFound] = useState<Found>()
  const asked = useRef('')
  // Asked again with each report, so that the answer stays as live as the rest.
  const second = Math.floor(view.time / 1_000)
  useEffect(() => {
    asked.current = search
    if (search === '') {
      setFound(undefined)
      return undefined
    }
    const timer = setTimeout(() => {
      send<Found>('find', { key: search }).then(
        (answer) => asked.current === search && setFound(answer),
        () => setFound(undefined),
      )
    }, 200)
    return () => clearTimeout(timer)
  }, [search, second])
  return found
}

function merge(first: readonly BlockedKey[], second: readonly BlockedKey[]): BlockedKey[] {
  const known = new Set(first.map(({ policy, key }) => `${policy} ${key}`))
  return [...first, ...second.filter(({ policy, key }) => !known.has(`${policy} ${key}`))]
}
