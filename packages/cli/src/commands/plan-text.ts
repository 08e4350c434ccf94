import type { LogSummary } from '../log/logs.ts'
import type { SeriesPart } from '../replay/series.ts'
import { bars, gathered } from '../terminal/chart.ts'
import type { Output } from '../terminal/output.ts'
import { bytes, count, duration, moment, percent, plural, safeText } from '../terminal/text.ts'
import { balancersText, clientText } from './plan-log.ts'
import type { ChangeReport, PlanReport, PolicyReport, RulesReport } from './plan-report.ts'

/** Shows the result of a replay. */
export function showPlan(report: PlanReport, out: Output): void {
  const { log, nodes, roundTrip, plan, against, changes } = report
  const { bold } = out.colors
  const time = log.from === undefined || log.to === undefined ? '' : `, ${moment(log.from)} to ${moment(log.to)} UTC`
  out.line(`${bold(plural(log.records - log.late, 'request'))} of ${log.files.map((file) => safeText(file)).join(', ')}${time}`)
  out.line(`${plural(nodes, 'process', 'processes')}, ${duration(roundTrip)} to the store and back`)
  showLog(log, out)
  for (const one of against === undefined ? [plan] : [against, plan]) showRules(one, out)
  if (changes === undefined) return
  out.line()
  out.line(bold('Changes'))
  showChange('rejected now, allowed before', changes.rejectedNow, out)
  showChange('allowed now, rejected before', changes.allowedNow, out)
}

function showLog(log: LogSummary, out: Output): void {
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

function showRules(report: RulesReport, out: Output): void {
  const { bold, red, green, dim, yellow } = out.colors
  const { requests, rejected, uncounted, series, store, memory } = report
  out.line()
  const paint = rejected > 0 ? red : green
  const share = `${paint(count(rejected))} of ${plural(requests, 'request')} rejected (${percent(rejected, requests)})`
  out.line(`${bold(safeText(report.rules))}, version ${report.version}: ${share}`)
  for (const note of report.notes) out.line(yellow(safeText(note, 400)))
  out.table(
    ['policy', 'rule', '#requests', '#rejected', '#of keys', '#exact', '#overshoot', '#worst'],
    report.policies.map((policy) => [
      safeText(policy.name, 30),
      ruleOf(policy),
      count(policy.requests),
      count(policy.rejected),
      count(policy.rejectedKeys),
      count(policy.exactRejected),
      count(policy.overshoot.units),
      percent(policy.overshoot.worst, 1),
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
    `store   ${plural(store.exchanges, 'sync')}, ${plural(store.keyWrites, 'key write')}${decisions}: ${Number(each.toPrecision(2))} operations per request ${dim('(a central counter: 1)')}`,
  )
  const keys = report.policies.map(({ name, keysHeld, overflowing }) => {
    const full = overflowing ? yellow(', and the table is full') : ''
    return `${count(keysHeld)} of ${safeText(name, 30)}${full}`
  })
  out.line(`memory  keys per process: ${keys.join(', ')}, about ${bytes(memory.bytes)}, ${bytes(memory.bytesPerKey)} per key`)
}

function ruleOf({ limit, interval, algorithm, coordination, dryRun }: PolicyReport): string {
  const per = interval === 0 ? 'in flight' : `per ${duration(interval)}`
  return `${count(limit)} ${per}, ${algorithm}, ${coordination}${dryRun ? ', dry run' : ''}`
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

function chart(
  name: string,
  values: readonly number[],
  { width: part }: { readonly width: number; readonly parts: readonly SeriesPart[] },
  width: number,
  out: Output,
): void {
  const together = Math.max(1, Math.ceil(values.length / width))
  const most = Math.max(0, ...gathered(values, width))
  const { dim, cyan, red } = out.colors
  const paint = name === 'requests' ? cyan : red
  out.line(`${name.padEnd(10)}  ${paint(bars(values, width, most).trimEnd())}`)
  out.line(dim(`${' '.repeat(12)}at most ${count(most)} in ${duration(part * together)}`))
}

function showKeys({ top, rejectedKeys, uncountedKeys }: PolicyReport, out: Output): void {
  out.table(
    ['key', '#requests', '#rejected', '#exact'],
    top.map(({ key, requests, rejected, exactRejected }) => [safeText(key), count(requests), count(rejected), count(exactRejected)]),
  )
  const more = rejectedKeys - top.length
  const { dim } = out.colors
  if (more > 0) out.line(dim(`and ${plural(more, 'further key')}; --top lists more`))
  if (uncountedKeys > 0) out.line(dim(`there were too many keys to count each, so some counts may be too low`))
}

function showChange(change: string, { requests, keys, top }: ChangeReport, out: Output): void {
  const { red, green, dim } = out.colors
  const paint = requests === 0 ? green : red
  out.line(`${paint(count(requests))} ${change}, of ${plural(keys, 'key')}`)
  if (top.length === 0) return
  out.table(
    ['policy', 'key', '#requests'],
    top.map(({ policy, key, requests: some }) => [safeText(policy, 30), safeText(key), count(some)]),
  )
  if (keys > top.length) out.line(dim(`and ${plural(keys - top.length, 'further key')}; --top lists more`))
}
