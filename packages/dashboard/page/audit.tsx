import type { AuditEntry } from '@weir/core/inspect'
import { visible } from '../src/visible.ts'
import { addressOf } from './address.ts'
import { keyName, moment } from './format.ts'

const SHOWN = 20

/** Actions of people on keys, newest first. */
export function Audit({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <section class="panel" aria-labelledby="audit">
      <h2 id="audit">Audit log</h2>
      {entries.length === 0 ? (
        <p class="soft">No key was blocked, unblocked or reset.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Action</th>
              <th scope="col">When</th>
              <th scope="col">By</th>
              <th scope="col">Reason</th>
            </tr>
          </thead>
          <tbody>
            {entries.slice(0, SHOWN).map(({ time, by, action, policy, key, reason }, place) => (
              <tr key={`${entries.length - place} ${time}`}>
                <th scope="row">
                  {visible(action)}{' '}
                  <a class="key" href={addressOf('key', key)} title={keyName(key)}>
                    {keyName(key)}
                  </a>
                  {policy !== undefined && <span class="rule text">{visible(policy)}</span>}
                </th>
                <td data-label="When">
                  <time dateTime={new Date(time).toISOString()}>{moment(time)}</time>
                </td>
                <td data-label="By">
                  <span class="text">{by === '' ? '–' : visible(by)}</span>
                </td>
                <td data-label="Reason">
                  <span class="text">{reason === '' ? '–' : visible(reason)}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
