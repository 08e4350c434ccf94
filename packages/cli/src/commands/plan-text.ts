import type { LogSummary } from '../log/logs.ts'
import { bars, gathered } from '../terminal/chart.ts'
import type { Output } from '../terminal/output.ts'
import { bytes, count, duration, moment, percent, plural, safeText, shareOf } from '../terminal/text.ts'
import { balancersText, clientText } from './plan-log.ts'
import type { ChangeReport, PlanReport, PolicyReport, RulesReport, SweepReport } from './plan-report.ts'

/** Shows the result of a replay, with the answer first. */
export function showPlan(report: PlanReport, out: Output): void {
  const { plan, against, changes } = report
  if (changes !== undefined && against !== undefined) showAnswer(changes, plan, against, out)
  for (const one of against === undefined ? [plan] : [plan, against]) out.line(rejectedText(one, out))
  showAssumptions(report, out)
  for (const one of against === undefined ? [plan] : [against, plan]) showRules(one, against !== undefined, out)
  if (changes === undefined) return
  showChange('Rejected now, allowed before', changes.rejectedNow, plan.requests, out)
  showChange('Allowed now, rejected before', changes.allowedNow, plan.requests, out)
}

/** Shows the effect of several limits of one policy. */
export function showSweep(report: SweepReport, out: Output): void {
  const { policy: name, sweep } = report
  const rows = sweep.map((rules) => ({ rules, policy: rules.policies.find((one) => one.name === name) as PolicyReport }))
  const [first] = rows
  if (first === undefined) return
  const { requests, keys } = first.policy
  const others = first.rules.policies.length > 1
  out.line(out.colors.bold(`${safeText(name, 30)}: ${plural(requests, 'request')}, ${plural(keys, 'key')}`))
  out.table(
    ['limit', '#rejected', '#keys rejected', '#exact', '#overshoot', ...(others ? ['#all policies'] : [])],
    rows.map(({ rules, policy }) => [
      `${count(policy.limit)} ${perOf(policy)}`,
      shareOf(policy.rejected, policy.requests),
      shareOf(policy.rejectedKeys, policy.keys),
      count(policy.exactRejected),
      overshootOf(policy),
      ...(others ? [shareOf(rules.rejected, rules.requests)] : []),
    ]),
  )
  showAssumptions(report, out)
  for (const note of first.rules.notes) out.line(out.colors.yellow(safeText(note, 400)))
}

/** Whether the new rules are stricter or looser, by the requests that they decide differently. */
function showAnswer(changes: NonNullable<PlanReport['changes']>, { requests }: RulesReport, against: RulesReport, out: Output): void {
  const { bold, red, green } = out.colors
  const other = nameIn(against, out)
  const text = ({ requests: some, keys }: ChangeReport): string => `${shareOf(some, requests)} of the requests, ${plural(keys, 'key')}`
  const { rejectedNow, allowedNow } = changes
  if (rejectedNow.requests > 0) out.line(`${red(bold('Stricter'))}: rejects ${text(rejectedNow)}, that ${other} allows`)
  if (allowedNow.requests > 0) out.line(`${green(bold('Looser'))}: allows ${text(allowedNow)}, that ${other} rejects`)
  if (rejectedNow.requests + allowedNow.requests === 0) out.line(`${green(bold('No change'))}: each request is decided as by ${other}`)
}

function rejectedText(report: RulesReport, out: Output): string {
  const { red, green } = out.colors
  const { rejected, requests, version } = report
  const share = `${count(rejected)} of ${plural(requests, 'request')} rejected (${percent(rejected, requests)})`
  return `${(rejected > 0 ? red : green)(share)}: ${nameIn(report, out)}, version ${version}`
}

/** The file of the rules, cut so that its line fits. */
function nameIn({ rules }: RulesReport, out: Output): string {
  return safeText(rules, Math.max(24, out.width - 64))
}

function showAssumptions({ log, nodes, roundTrip }: Pick<PlanReport, 'log' | 'nodes' | 'roundTrip'>, out: Output): void {
  out.line(log.files.map((file) => safeText(file)).join(', '))
  const requests = plural(log.records - log.late, 'request')
  if (log.from !== undefined && log.to !== undefined) out.line(`${requests}, ${moment(log.from)} to ${moment(log.to)} UTC`)
  out.line(`${plural(nodes, 'process', 'processes')}, ${duration(roundTrip)} to the store and back`)
  showLog(log, out)
}

function overshootOf({ overshoot: { units, worst } }: PolicyReport): string {
  return units === 0 ? '0' : `${count(units)} (${percent(worst, 1)})`
}

/** Shows the parts of the log that need attention. */
export function showLog(log: LogSummary, out: Output): void {
  const { lines, records, unreadable, samples, late, withoutRequest, broken, torn, client } = log
  const { yellow, dim } = out.colors
  const notes = [
    dim(clientText(client, records)),
    yellow(balancersText(client, records)),
    unreadable > 0 ? yellow(`${count(unreadable)} of ${plural(lines, 'line')} could not be read, such as`) : '',
    ...samples.map((sample) => dim(`  ${safeText(sample, out.width - 4)}`)),
    late > 0 ? yellow(`${plural(late, 'request')} too far out of order, left out: pass each server's log as its own file`) : '',
    ...torn.map((file) => yellow(`the compressed data of ${safeText(file)} is damaged: the part before the damage was read`)),
    withoutRequest > 0 ? dim(`${plural(withoutRequest, 'line')} without an HTTP request, counted as GET /`) : '',
    broken > 0 ? dim(`${plural(broken, 'line')} that ${broken === 1 ? 'is' : 'are'} only the end of a broken line`) : '',
  ]
  for (const note of notes) if (note !== '') out.line(note)
}

function showRules(report: RulesReport, named: boolean, out: Output): void {
  const { bold, dim, yellow } = out.colors
  const { requests, uncounted, series, store, memory } = report
  out.line()
  if (named) out.line(bold(nameIn(report, out)))
  for (const note of report.notes) out.line(yellow(safeText(note, 400)))
  for (const policy of report.policies) out.line(`${bold(safeText(policy.name, 30))}  ${ruleOf(policy)}`)
  out.table(
    ['policy', '#requests', '#rejected', '#keys rejected', '#exact', '#overshoot'],
    report.policies.map((policy) => [
      safeText(policy.name, out.width < 100 ? 14 : 30),
      count(policy.requests),
      shareOf(policy.rejected, policy.requests),
      `${count(policy.rejectedKeys)} of ${count(policy.keys)}`,
      count(policy.exactRejected),
      overshootOf(policy),
    ]),
  )
  const width = out.width - 12
  chart(
    'requests',
    series.parts.map((part) => part.requests),
    series,
    width,
    out,
  )
  for (const policy of report.policies) {
    if (policy.rejected > 0) {
      chart(safeText(policy.name, 10), along(policy, series), series, width, out)
      showKeys(policy, out)
    }
  }
  if (uncounted > 0) out.line(`${plural(uncounted, 'request')} that match no policy`)
  const decisions = store.decisions > 0 ? `, ${plural(store.decisions, 'decision')}` : ''
  const each = requests === 0 ? 0 : (store.keyWrites + store.decisions) / requests
  out.line(
    `store   ${plural(store.exchanges, 'sync')}, ${plural(store.keyWrites, 'key write')}${decisions}: ${Number(each.toPrecision(2))} per request ${dim('(a central counter: 1)')}`,
  )
  const keys = report.policies.map(({ name, keysHeld, overflowing }) => {
    const full = overflowing ? yellow(', and the table is full') : ''
    return `${count(keysHeld)} of ${safeText(name, 30)}${full}`
  })
  out.line(`memory  keys per process: ${keys.join(', ')}, about ${bytes(memory.bytes)}, ${bytes(memory.bytesPerKey)} per key`)
}

function ruleOf(policy: PolicyReport): string {
  const { limit, algorithm, coordination, dryRun } = policy
  return `${count(limit)} ${perOf(policy)}, ${algorithm}, ${coordination}${dryRun ? ', dry run' : ''}`
}

function perOf({ interval }: PolicyReport): string {
  return interval === 0 ? 'in flight' : `per ${duration(interval)}`
}

/** The rejections of a policy in each part of the log. */
function along({ rejections }: PolicyReport, { width, parts }: RulesReport['series']): readonly number[] {
  const sums = parts.map(() => 0)
  const first = parts[0]?.from ?? 0
  for (const { from, rejected } of rejections.parts) {
    const at = Math.min(sums.length - 1, Math.max(0, Math.floor((from - first) / width)))
    sums[at] = (sums[at] ?? 0) + rejected
  }
  return sums
}

function chart(name: string, values: readonly number[], { width: part, parts }: RulesReport['series'], width: number, out: Output): void {
  const together = Math.max(1, Math.ceil(values.length / width))
  const most = Math.max(0, ...gathered(values, width))
  const { dim, cyan, red } = out.colors
  const paint = name === 'requests' ? cyan : red
  out.line(`${name.padEnd(10)}  ${paint(bars(values, width, most).trimEnd())}`)
  out.line(dim(`${' '.repeat(12)}${axis(parts, part, Math.ceil(values.length / together))}`))
  out.line(dim(`${' '.repeat(12)}at most ${count(most)} in ${duration(part * together)}`))
}

/** The dates of the first and the last bar, in UTC. A narrow chart has only the first. */
function axis(parts: RulesReport['series']['parts'], part: number, length: number): string {
  const [from, to] = [parts[0]?.from ?? 0, (parts.at(-1)?.from ?? 0) + part]
  const [first, last] = [moment(from), moment(to)].map((text) => text.slice(0, to - from < 600_000 ? 19 : 16)) as [string, string]
  const gap = length - first.length - last.length
  return gap > 0 ? `${first}${' '.repeat(gap)}${last}` : first
}

function showKeys({ top, rejectedKeys, uncountedKeys }: PolicyReport, out: Output): void {
  out.table(
    ['key', '#requests', '#rejected', '#exact'],
    top.map(({ key, requests, rejected, exactRejected }) => [
      safeText(key, out.width < 100 ? 38 : 60),
      count(requests),
      shareOf(rejected, requests),
      count(exactRejected),
    ]),
  )
  const more = rejectedKeys - top.length
  const { dim } = out.colors
  if (more > 0) out.line(dim(`and ${plural(more, 'further key')}; --top lists more`))
  if (uncountedKeys > 0) out.line(dim('The log has more keys than can be counted separately, so some counts may be too low.'))
}

function showChange(change: string, { requests, keys, top }: ChangeReport, all: number, out: Output): void {
  if (top.length === 0) return
  const { bold, dim } = out.colors
  out.line()
  out.line(`${bold(change)}: ${count(requests)} of ${plural(all, 'request')} (${percent(requests, all)}), ${plural(keys, 'key')}`)
  out.table(
    ['policy', 'key', '#requests'],
    top.map(({ policy, key, requests: some }) => [safeText(policy, 20), safeText(key, 38), count(some)]),
  )
  if (keys > top.length) out.line(dim(`and ${plural(keys - top.length, 'further key')}; --top lists more`))
}
