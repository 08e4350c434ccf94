import type { PolicyView, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf, MODES, type Place } from './address.ts'
import { count, means, percent, rate, reserved, rule, span } from './format.ts'
import { Facts, History } from './history.tsx'
import { Limited } from './limited.tsx'
import { LimitSlider } from './slider.tsx'
import { Toolbar } from './toolbar.tsx'
import { Top } from './top.tsx'

/** One policy: its rule, its requests over time, its limited keys, and the effect of another limit. */
export function PolicyPage({ view, place }: { view: View; place: Place }) {
  const policy = view.policies.find(({ name }) => name === place.name)
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={addressOf('overview')}>Overview</a>
      </nav>
      {policy === undefined ? (
        <section class="panel" aria-labelledby="this-policy">
          <h2 id="this-policy">{visible(place.name)}</h2>
          <p class="soft">No process reports a policy with this name.</p>
        </section>
      ) : (
        <Page policy={policy} view={view} place={place} />
      )}
    </>
  )
}

function Page({ policy, view, place }: { policy: PolicyView; view: View; place: Place }) {
  const own = ({ policy: name }: { policy: string }): boolean => name === policy.name
  return (
    <>
      <section class="panel" aria-labelledby="this-policy">
        <h2 id="this-policy">
          {visible(policy.name)} <span class="tag">{MODES[policy.mode]}</span>
        </h2>
        <Facts
          facts={[
            ['Limit', `${rule(policy.limit, policy.intervalMs)}${means(policy)}`],
            ...settingsOf(policy),
            ['Allowed', `${rate(policy.allowedRate)} units / s`],
            ['Rejected', `${rate(policy.rejectedRate)} / s`],
            ['Keys at the limit', count(policy.atLimit)],
            ['Blocked keys', count(policy.blocked)],
            ...(policy.reservations.open > 0 ? [['Reservations', reserved(policy)] as const] : []),
            ['Overshoot', overshootOf(policy)],
          ]}
        />
      </section>
      <Toolbar place={place} modes={false} />
      <Limited limited={view.limited.filter(own)} mode={policy.mode} />
      <div class="charts">
        <History of={{ policy: policy.name }} view={view} place={place} unit="units allowed, requests rejected, per second" />
        <LimitSlider key={policy.name} policy={policy} />
      </div>
      <Top view={view} top={view.top.filter(own)} />
    </>
  )
}

/** The measured overshoot of the last hour, and the possible one. */
function overshootOf({ measuredOvershoot, overshoot }: PolicyView): string {
  return `${percent(measuredOvershoot)} last hour, ${percent(overshoot)} possible now`
}

/** A policy's key and cooldown, as far as this process has the policy, and its coordination. */
export function settingsOf({ keyedBy, cooldownMs, coordination }: PolicyView): readonly (readonly [string, string])[] {
  return [
    ...(keyedBy === undefined ? [] : [['Key', keyedBy] as const]),
    ...(cooldownMs === undefined ? [] : [['Cooldown', cooldownMs === 0 ? 'none' : span(cooldownMs)] as const]),
    ['Coordination', coordination],
  ]
}
