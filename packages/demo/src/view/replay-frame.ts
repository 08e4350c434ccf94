import type { Count, IntervalTally } from '../traffic/tally.ts'
import { blockedLine, type ClusterView, clusterHead, storeLine } from './cluster-frame.ts'
import type { Colors } from './colors.ts'
import { bar, count, duration, plural, safeText, seconds } from './format.ts'

/** What a frame of a replay shows. Times are milliseconds. */
export interface ReplayView extends ClusterView {
  /** Where the replay is, in the log's time. */
  readonly logTime: number
  readonly limit: number
  readonly logInterval: number
  /** The running interval, or the last whole one. */
  readonly current: IntervalTally
  readonly whole: boolean
  /** Clients that were refused, the most refused first. */
  readonly refused: readonly (readonly [client: string, count: Count])[]
}

const BAR = 30
const BUSIEST = 3
const LONGEST_NAME = 40

/** A time of the log: `2025-12-20 14:03`. */
export function whenLogged(time: number): string {
  return new Date(time).toISOString().slice(0, 16).replace('T', ' ')
}

export function replayFrame(view: ReplayView, colors: Colors): string {
  const busiest = [...view.current.clients].sort(([, a], [, b]) => b.admitted + b.refused - a.admitted - a.refused).slice(0, BUSIEST)
  const line = ([client, { admitted, refused }]: readonly [string, Count]): string =>
    `${safeText(client, LONGEST_NAME).padEnd(26)} ${bar(admitted, view.limit, BAR, colors)} ${count(admitted).padStart(5)} of ${count(view.limit).padEnd(6)} ${refused > 0 ? colors.red(`${count(refused)} refused`) : ''}`
  return [
    ...clusterHead(view, colors),
    `${colors.dim('the log’s')} ${whenLogged(view.logTime)} ${colors.dim(`· busiest clients of ${view.whole ? 'the last' : 'this'} ${duration(view.logInterval)}, admitted of limit`)}`,
    ...Array.from({ length: BUSIEST }, (_, i) => (busiest[i] === undefined ? '' : line(busiest[i]))),
    '',
    `${colors.dim('refused ')} ${refusedText(view)}`,
    storeLine(view, colors),
    blockedLine(view.status, colors),
    '',
  ].join('\n')
}

/** The same as a line. */
export function replayLine(view: ReplayView): string {
  return [
    seconds(view.elapsed).padStart(7),
    `the log’s ${whenLogged(view.logTime)}`,
    `gateways ${view.gateways.map(({ count: own }) => `${count(own.admitted)}+${count(own.refused)}`).join(' ')}`,
    `${count(view.rates.syncs)} syncs/s ${count(view.rates.operations)} ${view.status.commands === undefined ? 'keys/s' : 'commands/s'}`,
    `${view.status.nodes} nodes`,
    `refused ${refusedText(view)}`,
  ].join(' | ')
}

function refusedText({ refused }: ReplayView): string {
  if (refused.length === 0) return 'nobody so far'
  const shown = refused.slice(0, 3).map(([client, { refused: times }]) => `${safeText(client, LONGEST_NAME)} ${plural(times, 'time')}`)
  return `${shown.join(', ')}${refused.length > 3 ? ` and ${plural(refused.length - 3, 'more client')}` : ''}`
}
