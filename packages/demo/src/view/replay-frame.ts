import type { Count, IntervalTally } from '../traffic/tally.ts'
import { type ClusterView, clusterHead, gatewaysText, limitedLine, ratesText, storeLine, timedLines } from './cluster-frame.ts'
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

const BAR = 20
const BUSIEST = 3
const LONGEST_NAME = 26

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
    limitedLine(view.status, colors),
    '',
  ].join('\n')
}

/** The view as lines. */
export function replayLine(view: ReplayView): string {
  return timedLines(
    seconds(view.elapsed),
    [`the log’s ${whenLogged(view.logTime)}`, `rejected ${rejectedText(view)}`],
    [gatewaysText(view), ratesText(view), `${view.status.nodes} processes`],
  )
}

function rejectedText({ rejected }: ReplayView): string {
  if (rejected.length === 0) return 'no client so far'
  const shown = rejected.slice(0, 1).map(([client, { rejected: times }]) => `${safeText(client, LONGEST_NAME)} ${plural(times, 'time')}`)
  return `${shown.join(', ')}${rejected.length > 1 ? ` and ${plural(rejected.length - 1, 'more client')}` : ''}`
}
