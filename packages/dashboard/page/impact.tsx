import type { View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { count, many, percent } from './format.ts'
import { KeyCell } from './key-cell.tsx'

/** The most keys of candidate rules to show. */
const KEYS_SHOWN = 20

/** The requests that candidate rules would have rejected, and the difference from the enforced rules. */
export function Impact({ judged, overrides = 0 }: { judged: View['judged']; overrides?: number }) {
  return (
    <section class="panel" aria-labelledby="impact">
      <h2 id="impact">Impact</h2>
      <p class="soft">
        For the requests of all processes with a report, since each process loaded the candidate.
        {overrides > 0 && ` The candidate contains ${many(overrides, 'limit of a single key', 'limits of single keys')}.`}
      </p>
      <div class="pair">
        <table>
          <thead>
            <tr>
              <th scope="col">Candidate</th>
              <th scope="col" class="number">
                Would reject
              </th>
              <th scope="col" class="number">
                Share
              </th>
              <th scope="col" class="number">
                Difference
              </th>
            </tr>
          </thead>
          <tbody>
            {judged.policies.map(({ name, allowed, rejected, enforcedRejected }) => (
              <tr key={name}>
                <th scope="row">
                  <span class="name">{visible(name)}</span>
                </th>
                <td class={`number ${rejected > 0 ? 'no' : 'soft'}`} data-label="Would reject">
                  {count(rejected)} <span class="rule">of {count(allowed + rejected)}</span>
                </td>
                <td class="number" data-label="Share">
                  {allowed + rejected > 0 ? percent(rejected / (allowed + rejected)) : '–'}
                </td>
                <td class="number" data-label="Difference">
                  {enforcedRejected === undefined ? <span class="soft">no enforced rule</span> : difference(rejected, enforcedRejected)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <Keys keys={judged.keys} />
      </div>
    </section>
  )
}

/** The difference from the enforced rule: `+31 (+25 %)`. */
function difference(rejected: number, enforced: number): string {
  const more = rejected - enforced
  if (more === 0) return 'none'
  const sign = more > 0 ? '+' : '−'
  const part = enforced > 0 ? ` (${sign}${percent(Math.abs(more) / enforced)})` : ''
  return `${sign}${count(Math.abs(more))}${part}`
}

function Keys({ keys }: { keys: View['judged']['keys'] }) {
  if (keys.length === 0) return <p class="soft">The candidate would have rejected no key.</p>
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col" class="number">
            Would reject
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.slice(0, KEYS_SHOWN).map(({ policy, key, rejected }) => (
          <tr key={`${policy} ${key}`}>
            <KeyCell policy={policy} name={key} />
            <td class="number" data-label="Would reject">
              {count(rejected)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
