import type { RulesFound } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf } from './address.ts'
import { count, keyName, moment } from './format.ts'

interface OverridesOptions {
  readonly found: RulesFound
  readonly search: string
  readonly look: (text: string) => void
  readonly turn: (from: number) => void
}

/** A searchable list of limits of single keys, page by page. */
export function Overrides({ found: { overrides }, search, look, turn }: OverridesOptions) {
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
                      <a class="key" href={addressOf('key', key)} title={keyName(key)}>
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
