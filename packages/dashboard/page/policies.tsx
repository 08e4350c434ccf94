import type { PolicyView, View } from '../src/protocol.ts'
import { addressOf } from './address.ts'
import { Bar } from './bar.tsx'
import { count, keyName, means, percent, rate, rule, span } from './format.ts'

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
  const hottest = view.top.filter((key) => key.policy === policy.name).sort((a, b) => b.used - a.used)[0]
  const { keys, maxKeys } = policy
  return (
    <tr>
      <th scope="row">
        <span class="name">{policy.name}</span>
        {policy.dryRun === true && <span class="tag">dry run</span>}
        <span class="rule">
          {rule(policy.limit, policy.intervalMs)}
          {means(policy)}
        </span>
      </th>
      <td data-label="Most used key">
        {hottest === undefined ? (
          <span class="soft">none yet</span>
        ) : (
          <>
            <a class="key small" href={addressOf(hottest.key)} title={keyName(hottest.key)}>
              {keyName(hottest.key)}
            </a>
            <Bar used={hottest.used} limit={hottest.limit} />
          </>
        )}
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
      <td class="number" data-label="Blocked">
        {policy.dryRun === true ? '0' : count(policy.blocked)}
        {policy.dryRun === true && policy.blocked > 0 && <span class="rule">{count(policy.blocked)} would be</span>}
      </td>
      <td class="number" data-label="Unsynced">
        {count(policy.unsynced)}
        {policy.leased > 0 && <span class="rule">{count(Math.round(policy.leased))} taken ahead</span>}
      </td>
      <td class={`number ${policy.overshoot > 0.1 ? 'no' : ''}`} data-label="Overshoot">
        {percent(policy.overshoot)}
        {policy.debt >= 1 && <span class="rule">{count(Math.round(policy.debt))} owed</span>}
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
