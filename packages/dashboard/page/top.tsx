import type { TopKey, View } from '../src/protocol.ts'
import { Bar } from './bar.tsx'
import { KeyCell } from './key-cell.tsx'

const SHOWN = 12

interface TopOptions {
  readonly view: View
  readonly top: readonly TopKey[]
  /** Whether the list contains the results of a search. */
  readonly searched?: boolean
}

/** The most used keys, or the keys that a search has found. */
export function Top({ view, top, searched = false }: TopOptions) {
  const storeDown = view.state === 'storeDown'
  return (
    <section class={storeDown ? 'panel stale' : 'panel'} aria-labelledby="top">
      <h2 id="top">
        {searched ? 'Found' : 'Most used'} <span class="badge">{top.length}</span>
      </h2>
      {storeDown && <p class="soft">Counts of other processes are from before the store went down.</p>}
      {top.length === 0 ? (
        <p class="soft">{searched ? 'No key contains this.' : 'No key is in use.'}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Used of the limit</th>
            </tr>
          </thead>
          <tbody>
            {top.slice(0, searched ? top.length : SHOWN).map(({ policy, key, used, limit, debt }) => (
              <tr key={`${policy} ${key}`}>
                <KeyCell policy={policy} name={key} note={view.notes[key]} />
                <td data-label="Used of the limit">
                  <Bar used={used} limit={limit} debt={debt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
