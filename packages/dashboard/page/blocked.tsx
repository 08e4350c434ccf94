import { useState } from 'preact/hooks'
import type { BlockedView, Mode, View } from '../src/protocol.ts'
import type { Acting } from './acting.tsx'
import { BlockForm } from './block-form.tsx'
import { keyName } from './format.ts'
import { KeyCell } from './key-cell.tsx'
import { leftOf } from './standing.ts'

const SHOWN = 12

interface BlockedOptions {
  readonly view: View
  readonly blocked: readonly BlockedView[]
  readonly mode: Mode
  readonly acting: Acting
  /** Number of all blocked keys, of which `blocked` may contain only a part. */
  readonly total: number
  /** Whether the list contains only the results of a search. */
  readonly searched: boolean
}

/** Keys with a cooldown or a manual block. */
export function Blocked({ view, blocked, mode, acting: { act }, total, searched }: BlockedOptions) {
  return (
    <section class="panel" aria-labelledby="blocked">
      <h2 id="blocked">
        Blocked <span class="badge">{total}</span>
      </h2>
      {view.actions && <BlockForm policies={view.policies.map(({ name }) => name)} block={(body) => act('block', body)} />}
      {blocked.length === 0 ? (
        <p class="soft">{searched ? 'No blocked key contains this.' : 'No key is blocked.'}</p>
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
              <Row
                key={`${one.policy} ${one.key}`}
                one={one}
                note={view.notes[one.key]}
                mode={mode}
                actions={view.actions}
                unblock={() => act('unblock', { key: one.key, policy: one.policy })}
              />
            ))}
          </tbody>
        </table>
      )}
      {blocked.length > SHOWN && <p class="soft">And {blocked.length - SHOWN} more: search for one.</p>}
    </section>
  )
}

interface RowOptions {
  readonly one: BlockedView
  readonly note: string | undefined
  readonly mode: Mode
  readonly actions: boolean
  readonly unblock: () => Promise<void>
}

function Row({ one, note, mode, actions, unblock }: RowOptions) {
  const [busy, setBusy] = useState(false)
  const clicked = async (): Promise<void> => {
    setBusy(true)
    await unblock()
    setBusy(false)
  }
  const cause = one.cause === 'manual' ? 'manually' : 'cooldown'
  return (
    <tr class={mode === 'enforced' ? '' : 'stale'}>
      <KeyCell
        policy={one.policy}
        name={one.key}
        note={note}
        about={mode === 'dry-run' ? `${cause}, not rejected because of the dry run` : cause}
      />
      <td class="number" data-label="Time left">
        {leftOf(one)}
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
