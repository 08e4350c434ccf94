import type { Count, IntervalTally } from '../traffic/tally.ts'
import { blockedLine, type ClusterView, clusterHead, storeLine } from './cluster-frame.ts'
import type { Colors } from './colors.ts'
import { bar, count, duration, plural, safeText, seconds } from './format.ts'

/** The contents of a frame of a replay. Times are milliseconds. */
export interface ReplayView extends ClusterView {
  /** Current time of the replay, in the log's time. */
  readonly logTime: number
  readonly limit: number
  readonly logInterval: number
  /** The current interval, or the last complete one. */
  readonly current: IntervalTally
  readonly whole: boolean
  /** Clients that were rejected, the most rejected first. */
  readonly rejected: readonly (readonly [client: string, count: Count])[]
}

const BAR = 30
const BUSIEST = 3
const LONGEST_NAME = 40

/** A time of the log: `2025-12-20 14:03`. */
export function whenLogged(time: number): string {
  return new Date(time).toISOString().slice(0, 16).replace('T', ' ')
}

export function replayFrame(view: ReplayView, colors: Colors): string {
  const busiest = [...view.current.clients].sort(([, a], [, b]) => b.allowed + b.rejected - a.allowed - a.rejected).slice(0, BUSIEST)
  const line = ([client, { allowed, rejected }]: readonly [string, Count]): string =>
    `${safeText(client, LONGEST_NAME).padEnd(26)} ${bar(allowed, view.limit, BAR, colors)} ${count(allowed).padStart(5)} of ${count(view.limit).padEnd(6)} ${rejected > 0 ? colors.red(`${count(rejected)} rejected`) : ''}`
  return [
    ...clusterHead(view, colors),
    `${colors.dim('the log’s')} ${whenLogged(view.logTime)} ${colors.dim(`· busiest clients of ${view.whole ? 'the last' : 'this'} ${duration(view.logInterval)}, allowed of limit`)}`,
    ...Array.from({ length: BUSIEST }, (_, i) => (busiest[i] === undefined ? '' : line(busiest[i]))),
    '',
    `${colors.dim('rejected ')} ${rejectedText(view)}`,
    storeLine(view, colors),
    blockedLine(view.status, colors),
    '',
  ].join('\n')
}

/** The view as a line. */
export function replayLine(view: ReplayView): string {
  return [
    seconds(view.elapsed).padStart(7),
    `the log’s ${whenLogged(view.logTime)}`,
    `gateways ${view.gateways.map(({ count: own }) => `${count(own.allowed)}+${count(own.rejected)}`).join(' ')}`,
    `${count(view.rates.syncs)} syncs/s ${count(view.rates.operations)} ${view.status.commands === undefined ? 'keys/s' : 'commands/s'}`,
    `${view.status.nodes} processes`,
    `rejected ${rejectedText(view)}`,
  ].join(' | ')
}

function rejectedText({ rejected }: ReplayView): string {
  if (rejected.length === 0) return 'no client so far'
  const shown = rejected.slice(0, 3).map(([client, { rejected: times }]) => `${safeText(client, LONGEST_NAME)} ${plural(times, 'time')}`)
  return `${shown.join(', ')}${rejected.length > 3 ? ` and ${plural(rejected.length - 3, 'more client')}` : ''}`
}
