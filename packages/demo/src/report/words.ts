import Table from 'cli-table3'
import type { Colors } from '../view/colors.ts'
import { count, duration, plural, safeText, seconds } from '../view/format.ts'
import { whenLogged } from '../view/replay-frame.ts'
import type { LiveSummary } from './live-summary.ts'
import type { ReplaySummary } from './replay-summary.ts'
import { type RunSummary, TOO_LATE } from './summary.ts'

/** The most clients to list. The others are only counted. */
const LISTED = 20

/** The summary of a live run, as text. */
export function liveWords(summary: LiveSummary, colors: Colors): string {
  const { abusive, others, limits, intervals, outage } = summary
  const whole = intervals.filter((one) => one.whole && !one.outage)
  const average = whole.length === 0 ? undefined : whole.reduce((sum, one) => sum + one.abusive.allowed, 0) / whole.length
  const lines = [
    opening(summary, colors),
    `${abusive.client} sent ${abusive.timesItsLimit} times its limit: ${count(abusive.allowed)} allowed, ${count(abusive.rejected)} rejected` +
      `${average === undefined ? '' : ` – on average ${average.toFixed(1)} of ${count(limits.perClient)} per ${duration(limits.intervalMs)}, at most ${count(abusive.worstIntervalAllowed)}`}.`,
    `The ${plural(others.clients, 'other client')} sent ${count(others.allowed + others.rejected)} requests; ${others.rejected === 0 ? 'none was rejected' : `${count(others.rejected)} were rejected`}.`,
    ...(others.storeDown > 0 ? [withoutStore(others.storeDown)] : []),
    exchange(summary),
  ]
  if (outage !== undefined) {
    const slowest = (times: readonly (number | null)[]): string =>
      times.includes(null) ? 'not all of them' : `all within ${count(Math.max(...times.map(Number)))} ms`
    const during = intervals.filter((one) => one.whole && one.outage)
    const most = Math.max(0, ...during.map((one) => one.abusive.allowed))
    lines.push(
      `Redis was killed after ${seconds(outage.killedAfterMs)}: the gateways noticed (${slowest(outage.storeDownAfterMs)}) and decided with the counts they had` +
        `${during.length === 0 ? '' : `. ${abusive.client} got at most ${count(most)} in an interval`}.`,
    )
    if (outage.restartedAfterMs !== undefined) {
      lines.push(
        `It was restarted without its data after ${seconds(outage.restartedAfterMs)}: the gateways were synced again (${slowest(outage.storeUpAfterMs)}).`,
      )
    }
  }
  return [...lines, ...checkLines(summary, colors)].join('\n')
}

/** The summary of a replay, as text. */
export function replayWords(summary: ReplaySummary, colors: Colors): string {
  const { log, limits, comparison, strayed, exactByLog } = summary
  const broken = log.broken > 0 ? `, ${plural(log.broken, 'line')} with only the end of a broken line` : ''
  const noise = log.withoutRequest > 0 ? `, ${count(log.withoutRequest)} without an HTTP request (sent as GET /)` : ''
  const same = comparison.sameClients ? colors.green('the same clients') : colors.yellow('different clients')
  return [
    opening(summary, colors),
    `The log: ${plural(log.lines, 'line')}, ${plural(log.records, 'record')}${broken}${noise}; ${log.skipped === 0 ? 'nothing' : plural(log.skipped, 'unreadable line')} skipped${log.truncated ? '. Its compressed data ends early' : ''}.`,
    `Replayed: ${plural(log.requests, 'request')} of ${plural(log.clients, 'client')}, ${whenLogged(Date.parse(log.from))} to ${whenLogged(Date.parse(log.to))}, ${count(limits.speed)} times faster; ${count(limits.perClient)} per ${duration(limits.logIntervalMs)} and client as ${count(limits.perClient)} per ${duration(limits.intervalMs)}.`,
    '',
    comparisonTable(summary, colors),
    `Rejected by the gateways and by an exact limiter: ${same}.`,
    ...(comparison.requestsStoreDown > 0 ? [withoutStore(comparison.requestsStoreDown)] : []),
    'The exact limiter is one counter per client and interval. It decides each request in the interval in which the request reached its gateway.',
    strayed === 0
      ? 'Every request arrived in its own interval, so the log’s own times give the same figures.'
      : `${plural(strayed, 'request')} arrived in another interval than in the log. By the log’s own times an exact limiter rejects ${plural(exactByLog.clientsRejected, 'client')} ${plural(exactByLog.requestsRejected, 'request')}.`,
    exchange(summary),
    ...checkLines(summary, colors),
  ].join('\n')
}

function withoutStore(rejected: number): string {
  return `${plural(rejected, 'request')} rejected while the store’s reply was late, because a gateway then applies its share of the limit.`
}

function comparisonTable({ comparison }: ReplaySummary, colors: Colors): string {
  const table = new Table({
    head: ['rejected', 'requests', 'by the gateways', 'by an exact limiter'].map((text) => colors.dim(text)),
    colAligns: ['left', 'right', 'right', 'right'],
    style: { head: [], border: colors.isColorSupported ? ['grey'] : [], compact: true },
  })
  for (const { client, requests, rejected, exactRejected } of comparison.clients.slice(0, LISTED)) {
    const name = safeText(client, 45)
    table.push([rejected > 0 === exactRejected > 0 ? name : colors.yellow(name), count(requests), count(rejected), count(exactRejected)])
  }
  if (comparison.clients.length > LISTED) table.push([`and ${plural(comparison.clients.length - LISTED, 'more client')}`, '', '', ''])
  table.push([
    colors.bold('requests'),
    '',
    colors.bold(count(comparison.requestsRejected)),
    colors.bold(count(comparison.exactRequestsRejected)),
  ])
  table.push([
    colors.bold('clients'),
    '',
    colors.bold(count(comparison.clientsRejected)),
    colors.bold(count(comparison.exactClientsRejected)),
  ])
  return table.toString()
}

function opening({ interrupted, seconds: ran, requests, gateways, store }: RunSummary, colors: Colors): string {
  const shares = gateways.map(({ name, allowed, rejected }) => `${name} ${count(allowed + rejected)}`).join(', ')
  return `${colors.bold(interrupted ? 'Ended early' : 'Done')}: ${count(requests)} requests in ${ran.toFixed(1)} s through ${shares}. Store: ${store.text}.`
}

function exchange({ sync, requests }: RunSummary): string {
  const commands =
    sync.storeCommands === null
      ? ''
      : ` and ${count(sync.storeCommands)} Redis commands (${(sync.storeCommands / Math.max(1, requests)).toFixed(2)} for each request; --compare shows the commands of a counter in Redis)`
  return `It took ${plural(sync.syncs, 'sync')}${sync.failed > 0 ? `, ${count(sync.failed)} of them failed,` : ''} of ${plural(sync.keysExchanged, 'key')}${commands}. No request waited for a sync.`
}

export function checkLines({ checks, latestMs }: Pick<RunSummary, 'checks' | 'latestMs'>, colors: Colors): string[] {
  const late = colors.yellow(`This machine was too busy: requests were up to ${seconds(latestMs)} late. The figures mean little.`)
  return [
    ...(latestMs < TOO_LATE ? [] : [late]),
    '',
    ...checks.map(
      ({ name, ok, detail }) =>
        `${ok === null ? colors.yellow('–') : ok ? colors.green('✓') : colors.red('✗')} ${name} ${colors.dim(`(${detail}${ok === null ? ', not judged' : ''})`)}`,
    ),
  ]
}
