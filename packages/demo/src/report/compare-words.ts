import Table from 'cli-table3'
import type { Colors } from '../view/colors.ts'
import { WAY_TEXTS } from '../view/compare-frame.ts'
import { count, duration } from '../view/format.ts'
import type { CompareSummary, WaySummary } from './compare-summary.ts'
import { checkLines } from './words.ts'

/** The summary of a comparison, as text. */
export function compareWords(summary: CompareSummary, colors: Colors): string {
  const { ways, store, limits, interrupted, checks } = summary
  const [background, central] = ways
  if (interrupted || background === undefined || central === undefined) return `${colors.bold('Ended early')}: there is nothing to compare.`
  const less = 100 * (1 - background.redis.commands / Math.max(1, central.redis.commands))
  return [
    `${colors.bold('Done')}: ${count(background.requests)} requests, twice; ${count(limits.perClient)} per ${duration(limits.intervalMs)} and client. Store: ${store}.`,
    '',
    table(background, central, colors),
    `Redis executed ${less.toFixed(1)} % fewer commands. If Redis decides each request, the request waits for its reply: here a round trip`,
    'within one machine, elsewhere a round trip of your network. (A client that has reached its limit is rejected without Redis.)',
    'With background syncs no request waits, but slightly more than the limit may be allowed.',
    ...checkLines({ checks, latestMs: Math.max(...ways.map(({ latestMs }) => latestMs)) }, colors),
  ].join('\n')
}

function table(background: WaySummary, central: WaySummary, colors: Colors): string {
  const made = new Table({
    head: ['', WAY_TEXTS.background, WAY_TEXTS.central].map((text) => colors.dim(text)),
    colAligns: ['left', 'right', 'right'],
    style: { head: [], border: colors.isColorSupported ? ['grey'] : [], compact: true },
  })
  const row = (name: string, read: (way: WaySummary) => string): void => void made.push([name, read(background), read(central)])
  row('Redis commands', ({ redis }) => count(redis.commands))
  row('… for each request', ({ redis }) => redis.commandsPerRequest.toFixed(2))
  row('scripts among them', ({ redis }) => count(redis.scripts))
  row('processor time of Redis', ({ redis }) => `${count(redis.cpuMs)} ms`)
  row('through a gateway, median', ({ gatewayMs }) => `${gatewayMs.median.toFixed(2)} ms`)
  row('… 99 of 100 requests', ({ gatewayMs }) => `${gatewayMs.p99.toFixed(2)} ms`)
  row(`mallory, allowed of ${count(background.abusive.limit)}`, ({ abusive }) => abusive.perInterval.map(count).join(', ') || '–')
  return made.toString()
}
