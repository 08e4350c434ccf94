import type { PolicyView, View } from '../src/protocol.ts'
import { Bar } from './bar.tsx'
import { count, keyName, means, percent, rate, rule } from './format.ts'

export function Policies({ view }: { view: View }) {
  return (
    <section class="panel" aria-labelledby="policies">
      <h2 id="policies">Limits</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Policy</th>
            <th scope="col">Hottest key</th>
            <th scope="col" class="number">
              Admitted / s
            </th>
            <th scope="col" class="number">
              Refused / s
            </th>
            <th scope="col" class="number wide">
              Keys
            </th>
            <th scope="col" class="number wide">
              Blocked
            </th>
            <th scope="col" class="number wide">
              Unsynced
            </th>
            <th scope="col" class="number wide">
              Overshoot
            </th>
          </tr>
        </thead>
        <tbody>
          {view.policies.map((policy) => (
            <Row key={policy.name} policy={policy} view={view} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Row({ policy, view }: { policy: PolicyView; view: View }) {
  const hottest = view.top.filter((key) => key.policy === policy.name).sort((a, b) => b.used - a.used)[0]
  const { keys, maxKeys } = policy
  return (
    <tr>
      <th scope="row">
        <span class="name">{policy.name}</span>
        {policy.dryRun === true && <span class="tag">dry run</span>}
        <span class="rule">
          {rule(policy.limit, policy.interval)}
          {means(policy)}
        </span>
      </th>
      <td>
        {hottest === undefined ? (
          <span class="soft">none yet</span>
        ) : (
          <>
            <span class="key small" title={hottest.key}>
              {keyName(hottest.key)}
            </span>
            <Bar used={hottest.used} limit={hottest.limit} />
          </>
        )}
      </td>
      <td class="number ok">{rate(policy.admittedRate)}</td>
      <td class={`number ${policy.refusedRate > 0 ? 'no' : 'soft'}`}>{rate(policy.refusedRate)}</td>
      <td class="number wide">
        {keys === undefined ? '–' : count(keys)}
        {policy.overflowing === true && <span class="tag no">full at {count(maxKeys ?? 0)}</span>}
      </td>
      <td class="number wide">{count(policy.blocked)}</td>
      <td class="number wide">
        {count(policy.unsynced)}
        {policy.held > 0 && <span class="rule">{count(Math.round(policy.held))} held ahead</span>}
      </td>
      <td class={`number wide ${policy.overshoot > 0.1 ? 'no' : ''}`}>{percent(policy.overshoot)}</td>
    </tr>
  )
}
