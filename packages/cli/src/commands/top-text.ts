import type { ClusterView } from '../cluster/store-watch.ts'
import type { Output } from '../terminal/output.ts'
import { count, duration, percent, plural, safeText } from '../terminal/text.ts'

/** The width from which on there is space for every column. */
const WIDE = 100
/** The most characters of a process's or a key's name. */
const LONGEST = 60
const SHORTEST = 8

/** A cluster as lines of tables: the keys that are limited now first. */
export function topText(
  { live, nodes, limited, overshoot, hot, reservations, blocked }: ClusterView,
  most: number,
  out: Output,
): readonly string[] {
  const { bold, dim, red, yellow } = out.colors
  const policyOf = (name: string): string => safeText(name, out.width < WIDE ? 10 : 30)
  const lines: string[] = []
  const now = limited.filter(({ rejectedLastMinute }) => rejectedLastMinute > 0)
  lines.push(now.length === 0 ? dim('limited now: no key in the last minute') : red(`limited now: ${plural(now.length, 'key')}`))
  if (now.length > 0) {
    lines.push(
      tableOf(
        ['policy', 'key', 'reason', '#last min', '#total', '#since', '#last'],
        now
          .slice(0, most)
          .map(({ policy, key, reason, rejectedLastMinute, rejected, sinceFirstMs, sinceLastMs }) => [
            policyOf(policy),
            key,
            REASONS[reason] ?? reason,
            brief(rejectedLastMinute),
            brief(rejected),
            ago(sinceFirstMs),
            ago(sinceLastMs),
          ]),
        1,
        out,
      ),
    )
  }
  lines.push(
    dim(
      `overshoot: measured ${percent(overshoot.measured, 1)} in the last hour, possible now ${percent(overshoot.possible, 1)} of the limit`,
    ),
  )
  const silent = live - nodes.length
  lines.push(`${bold(plural(live, 'process', 'processes'))}${silent > 0 ? dim(`, ${count(silent)} of them without a report yet`) : ''}`)
  if (nodes.length > 0) {
    lines.push(
      tableOf(
        ['process', 'state', '#allowed', '#rejected', '#sync', '#last seen'],
        nodes
          .slice(0, most)
          .map(({ label, state, requests, roundTripMs, age }) => [
            label,
            safeText(state, 20),
            brief(requests.allowed),
            brief(requests.rejected),
            duration(roundTripMs),
            ago(age),
          ]),
        0,
        out,
      ).replaceAll(/storeDown|connecting/g, (state) => yellow(state)),
    )
  }
  if (hot.length > 0) {
    lines.push(
      bold('keys nearest to their limits'),
      tableOf(
        ['policy', 'key', '#used', '#limit', '#share'],
        hot
          .slice(0, most)
          .map(({ policy, key, used, limit, debt }) => [
            policyOf(policy),
            key,
            debt >= 1 ? `${brief(used)} + ${brief(debt)} debt` : brief(used),
            brief(limit),
            percent(used, limit),
          ]),
        1,
        out,
      ),
    )
  }
  if (reservations.length > 0) {
    lines.push(
      bold('open reservations'),
      tableOf(
        ['policy', '#open', '#units reserved'],
        reservations.slice(0, most).map(({ policy, open, units }) => [policy, brief(open), brief(units)]),
        0,
        out,
      ),
    )
  }
  lines.push(blocked.length === 0 ? dim('no key is blocked') : red(plural(blocked.length, 'blocked key')))
  if (blocked.length > 0) {
    lines.push(
      tableOf(
        ['policy', 'key', '#for', 'reason'],
        blocked
          .slice(0, most)
          .map(({ policy, key, remaining, manual }) => [policyOf(policy), key, duration(remaining), manual ? 'manual block' : 'cooldown']),
        1,
        out,
      ),
    )
  }
  return lines.flatMap((line) => line.split('\n'))
}

/** The words of rejection reasons. */
const REASONS: Readonly<Record<string, string>> = {
  limit: 'at its limit',
  cooldown: 'cooldown',
  blocked: 'manual block',
  storeDown: 'store down',
  overflow: 'table full',
}

/** A time in one whole unit, which needs at most six characters: `< 1 s`, `59 min`. */
function ago(milliseconds: number): string {
  if (milliseconds < 1_000) return '< 1 s'
  const unit = [86_400_000, 3_600_000, 60_000, 1_000].find((least) => milliseconds >= least) ?? 1_000
  return duration(unit * Math.floor(milliseconds / unit))
}

/** A count with at most seven characters up to a billion: `999,999`, `123.5 M`. */
function brief(value: number): string {
  return value < 1e6 ? count(value) : `${(value / 1e6).toFixed(1)} M`
}

/** A table in the width of the output. The text in one column is cut to the space that the others leave. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[], cut: number, out: Output): string {
  // Each cell has a border and two blanks.
  let space = out.width - 3 * head.length - 1
  for (const [at, name] of head.entries()) {
    if (at !== cut) space -= Math.max(name.replace('#', '').length, ...rows.map((row) => row[at]?.length ?? 0))
  }
  const longest = Math.min(LONGEST, Math.max(SHORTEST, space))
  return out.tableText(
    head,
    rows.map((row) => row.map((cell, at) => (at === cut ? safeText(cell, longest) : cell))),
  )
}
