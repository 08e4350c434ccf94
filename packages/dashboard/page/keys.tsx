import type { BlockedView, Found, Mode, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { type Acting, ReasonField, Said, useActing } from './acting.tsx'
import { addressOf, type Place, set } from './address.ts'
import { Bar } from './bar.tsx'
import { Blocked } from './blocked.tsx'
import { keyName } from './format.ts'
import { standing, usedOf } from './standing.ts'
import { Top } from './top.tsx'
import { useFound } from './use-answer.ts'

/** Most used and blocked keys, with a search and actions. */
export function Keys({ view, place: { find, mode } }: { view: View; place: Place }) {
  const acting = useActing()
  const found = useFound(find === '' ? undefined : find, view)
  const searched = find !== ''
  const listed = ({ policy }: { policy: string }): boolean => modeOf(view, policy) === mode
  const blocked = blockedOf(view, find, found).filter(listed)
  // Until the server answers, the lists of the page are searched.
  const top = !searched ? view.top : (found?.matches ?? view.top.filter(({ key }) => contains(key, find)))
  return (
    <section class="keys" aria-labelledby="keys">
      <div class="keys-head">
        <h2 id="keys">Keys</h2>
        <label class="search">
          <span class="hidden">Find a key</span>
          <input
            type="search"
            placeholder="Find a key"
            value={find}
            onInput={(event) => set({ find: event.currentTarget.value })}
            autoComplete="off"
            spellcheck={false}
          />
        </label>
        {view.actions && <ReasonField acting={acting} />}
        <Said acting={acting} />
      </div>
      {searched && found !== undefined && found.parts.length > 0 && <Exact found={found} view={view} acting={acting} />}
      <div class="pair">
        <Top view={view} top={top.filter(listed)} searched={searched} />
        <Blocked
          view={view}
          blocked={blocked}
          mode={mode}
          acting={acting}
          total={searched ? blocked.length : totalOf(view, mode)}
          searched={searched}
        />
      </div>
    </section>
  )
}

function modeOf({ policies }: View, name: string): Mode {
  return policies.find((policy) => policy.name === name)?.mode ?? 'enforced'
}

function totalOf({ policies }: View, mode: Mode): number {
  return policies.reduce((sum, policy) => sum + (policy.mode === mode ? policy.blocked : 0), 0)
}

function contains(key: string, text: string): boolean {
  return key.toLowerCase().includes(text.toLowerCase())
}

/** Blocked keys that contain a text, from the lists of the page and from the server's search. */
function blockedOf(view: View, find: string, found: Found | undefined): readonly BlockedView[] {
  const shown = view.blocked.filter(({ key }) => contains(key, find))
  const known = new Set(shown.map(({ policy, key }) => `${policy} ${key}`))
  return [...shown, ...(found?.blocked ?? []).filter(({ policy, key }) => !known.has(`${policy} ${key}`))]
}

/** The server's data of exactly the key that was searched. */
function Exact({ found, view, acting: { act } }: { found: Found; view: View; acting: Acting }) {
  return (
    <div class="panel answer">
      <h3>
        <a class="key" href={addressOf('key', found.key)}>
          {keyName(found.key)}
        </a>
      </h3>
      <ul>
        {found.parts.map((part) => {
          const { policy, limit } = part
          const { text, tone } = standing(part)
          return (
            <li key={policy}>
              <b>{visible(policy)}</b> <Bar {...usedOf(part, view)} limit={limit} /> <span class={tone}>{text}</span>
              {view.actions && (
                <button
                  type="button"
                  class="quiet"
                  onClick={() => act('reset', { key: found.key, policy })}
                  aria-label={`Reset ${keyName(found.key)} in ${policy}`}
                >
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
