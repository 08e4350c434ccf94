import type { PolicyView, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf, MODES } from './address.ts'
import { Bar } from './bar.tsx'
import { count, keyName, means, percent, rate, reserved, rule, span } from './format.ts'
import { settingsOf } from './policy-page.tsx'

export function Policies({ view }: { view: View }) {
  return (
    <section class="panel" aria-labelledby="policies">
      <h2 id="policies">Limits</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Policy</th>
            <th scope="col">Most used key</th>
            <th scope="col" class="number">
              Units / s
            </th>
            <th scope="col" class="number">
              Rejections / s
            </th>
            <th scope="col" class="number">
              Keys
            </th>
            <th scope="col" class="number">
              At limit
            </th>
            <th scope="col" class="number">
              Blocked
            </th>
            <th scope="col" class="number">
              Unsynced
            </th>
            <th scope="col" class="number">
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
  const busiest = view.top.filter((key) => key.policy === policy.name).sort((a, b) => b.used - a.used)[0]
  const { keys, maxKeys } = policy
  return (
    <tr>
      <th scope="row">
        <a class="name" href={addressOf('policy', policy.name)}>
          {visible(policy.name)}
        </a>
        {policy.mode !== 'enforced' && <span class="tag">{MODES[policy.mode].toLowerCase()}</span>}
        <span class="rule">
          {rule(policy.limit, policy.intervalMs)}
          {means(policy)}
        </span>
        <span class="rule">
          {settingsOf(policy)
            .map(([name, value]) => `${name.toLowerCase()} ${value}`)
            .join(' · ')}
        </span>
      </th>
      <td data-label="Most used key">
        {busiest === undefined ? (
          <span class="soft">none yet</span>
        ) : (
          <>
            <a class="key small" href={addressOf('key', busiest.key)} title={keyName(busiest.key)}>
              {keyName(busiest.key)}
            </a>
            <Bar used={busiest.used} limit={busiest.limit} debt={busiest.debt} />
          </>
        )}
        {policy.reservations.open > 0 && <span class="rule">{reserved(policy)}</span>}
        {policy.waiting > 0 && <Waiting policy={policy} view={view} />}
      </td>
      <td class="number ok" data-label="Units / s">
        {rate(policy.allowedRate)}
        {policy.intervalMs === 0 && <span class="rule">{count(policy.inFlight)} in flight</span>}
      </td>
      <td class={`number ${policy.rejectedRate > 0 ? 'no' : 'soft'}`} data-label="Rejections / s">
        {rate(policy.rejectedRate)}
      </td>
      <td class="number" data-label="Keys">
        {keys === undefined ? '–' : count(keys)}
        {policy.overflowing === true && <span class="tag no">full at {count(maxKeys ?? 0)}</span>}
      </td>
      <td class="number" data-label="At limit">
        {count(policy.atLimit)}
      </td>
      <td class="number" data-label="Blocked">
        {policy.mode === 'enforced' ? count(policy.blocked) : '0'}
        {policy.mode !== 'enforced' && policy.blocked > 0 && <span class="rule">{count(policy.blocked)} would be</span>}
      </td>
      <td class="number" data-label="Unsynced">
        {count(policy.unsynced)}
        {policy.leased > 0 && <span class="rule">{count(Math.round(policy.leased))} leased</span>}
      </td>
      <td class={`number ${policy.measuredOvershoot > 0.1 ? 'no' : ''}`} data-label="Overshoot">
        {percent(policy.measuredOvershoot)}
        <span class="rule">{percent(policy.overshoot)} possible now</span>
        {policy.debt >= 1 && <span class="rule">debt {count(Math.round(policy.debt))}</span>}
      </td>
    </tr>
  )
}

/** The most waiting keys to name. */
const NAMED = 3

function Waiting({ policy: { name, waiting, longestWaitMs: longestWait }, view }: { policy: PolicyView; view: View }) {
  const keys = view.waiting.filter(({ policy }) => policy === name).slice(0, NAMED)
  return (
    <span class="rule">
      {count(waiting)} {waiting === 1 ? 'waits' : 'wait'}, up to {span(longestWait)}
      {keys.map(({ key, requests }) => (
        <span class="key small" key={key} title={keyName(key)}>
          {keyName(key)}: {count(requests)}
        </span>
      ))}
    </span>
  )
}
