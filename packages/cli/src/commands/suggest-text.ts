import type { FrequentText } from '../replay/frequent.ts'
import type { Output } from '../terminal/output.ts'
import { count, duration, moment, percent, plural, safeText, shareOf } from '../terminal/text.ts'
import { showLog } from './plan-text.ts'
import type { ClientReport, LimitReport, SuggestReport } from './suggest-report.ts'

/** A smaller share of a client's requests is chance. */
const LEAST_SHARE = 0.02

/**
 * Shows the suggestion first, then the percentiles, limits and clients that it comes from.
 *
 * @param file the file to which the rules were written
 */
export function showSuggestion(report: SuggestReport, file: string | undefined, out: Output): void {
  const { log, interval, requests, clients, busiest, leaves99, above } = report
  const { bold, dim } = out.colors
  const per = `per ${duration(interval)}`
  const { limit, rejected, rejectedClients } = leaves99
  out.line(`A limit of ${bold(`${count(limit)} ${per}`)} leaves 99 % of ${plural(clients, 'client')} alone.`)
  out.line(`It rejects ${shareOf(rejected, requests)} of ${plural(requests, 'request')}, from ${plural(rejectedClients, 'client')}.`)
  if (file !== undefined) out.line(`Written to ${safeText(file, 200)}. Next: weir plan <logs> --rules ${safeText(file, 200)}`)
  out.line()
  out.line(log.files.map((name) => safeText(name)).join(', '))
  if (log.from !== undefined && log.to !== undefined) out.line(`${moment(log.from)} to ${moment(log.to)} UTC`)
  showLog(log, out)
  out.line()
  out.line(`${bold('Requests of a client')} in its busiest ${duration(interval)}`)
  const names = Object.keys(busiest) as (keyof typeof busiest)[]
  out.table(
    names.map((name) => `#${name}`),
    [names.map((name) => count(busiest[name]))],
  )
  out.line(`${bold('Limits')} ${per}`)
  out.table(
    ['#limit', '#rejected', '#clients rejected', 'leaves alone'],
    limitsOf(report).map((one) => [
      count(one.limit),
      shareOf(one.rejected, requests),
      shareOf(one.rejectedClients, clients),
      one === leaves99 ? '99 %' : one === report.leaves999 ? '99.9 %' : '',
    ]),
  )
  if (above.length === 0) return
  out.line(`${bold('Clients above')} ${count(limit)} ${per}`)
  for (const one of above) showClient(one, interval, out)
  const more = rejectedClients - above.length
  if (more > 0) out.line(dim(`and ${plural(more, 'further client')}; --top lists more`))
}

/** All limits in order, each once. */
function limitsOf({ leaves99, leaves999, others }: SuggestReport): readonly LimitReport[] {
  const exact = leaves99.limit === leaves999.limit ? [leaves99] : [leaves99, leaves999]
  const round = others.filter(({ limit }) => exact.every((one) => one.limit !== limit))
  return [...exact, ...round].sort((one, other) => one.limit - other.limit)
}

function showClient({ client, requests, busiest, busiestAt, agents, routes, statuses }: ClientReport, interval: number, out: Output): void {
  const { cyan, dim } = out.colors
  const at = interval % 60_000 === 0 ? moment(busiestAt).slice(0, -3) : moment(busiestAt)
  const most = `${count(busiest)} in ${duration(interval)} from ${at} UTC, ${plural(requests, 'request')}`
  out.line(`${cyan(safeText(client, 40))}  ${most}`)
  for (const [name, texts, longest] of [
    ['agent', agents.slice(0, 1), out.width - 22],
    ['routes', routes, Math.floor((out.width - 34) / 3)],
    ['status', statuses, 10],
  ] as const)
    if (texts.length > 0) out.line(`  ${dim(name.padEnd(6))}  ${frequentText(texts, longest)}`)
}

function frequentText(texts: readonly FrequentText[], longest: number): string {
  // A scanner requests each path once.
  const many = (texts[0]?.share ?? 0) < LEAST_SHARE
  const list = texts.map(({ text, share }) => `${safeText(text, longest)}${many ? '' : ` (${percent(share, 1)})`}`)
  return many ? `many, such as ${list.slice(0, 2).join(', ')}` : list.join(', ')
}
