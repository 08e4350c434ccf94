import type { ClusterView } from '../cluster/store-watch.ts'
import type { Output } from '../terminal/output.ts'
import { count, duration, percent, plural, safeText } from '../terminal/text.ts'

/** A cluster as lines of tables. */
export function topText({ live, nodes, hot, blocked }: ClusterView, most: number, out: Output): readonly string[] {
  const { bold, dim, red, yellow } = out.colors
  const silent = live - nodes.length
  const lines = [`${bold(plural(live, 'process', 'processes'))}${silent > 0 ? dim(`, ${count(silent)} of them without a report yet`) : ''}`]
  if (nodes.length > 0) {
    lines.push(
      out.tableText(
        ['process', 'state', '#allowed', '#rejected', '#keys', '#round trip', '#reported'],
        nodes
          .slice(0, most)
          .map(({ label, state, requests, policies, roundTripMs: roundTrip, age }) => [
            safeText(label, 40),
            state === 'synced' ? state : yellow(safeText(state, 20)),
            count(requests.allowed),
            count(requests.rejected),
            count(policies.reduce((sum, { keys }) => sum + keys, 0)),
            duration(roundTrip),
            `${duration(age)} ago`,
          ]),
      ),
    )
  }
  if (hot.length > 0) {
    lines.push(
      bold('keys nearest to their limits'),
      out.tableText(
        ['policy', 'key', '#used', '#of', '#part'],
        hot
          .slice(0, most)
          .map(({ policy, key, used, limit }) => [
            safeText(policy, 30),
            safeText(key),
            count(used),
            limit === undefined ? '' : count(limit),
            limit === undefined ? '' : percent(used, limit),
          ]),
      ),
    )
  }
  lines.push(blocked.length === 0 ? dim('no key is blocked') : red(`${plural(blocked.length, 'blocked key')}`))
  if (blocked.length > 0) {
    lines.push(
      out.tableText(
        ['policy', 'key', '#for', 'why'],
        blocked
          .slice(0, most)
          .map(({ policy, key, remaining, manual }) => [
            safeText(policy, 30),
            safeText(key),
            duration(remaining),
            manual ? 'blocked manually' : 'exceeded its limit',
          ]),
      ),
    )
  }
  return lines.flatMap((line) => line.split('\n'))
}
