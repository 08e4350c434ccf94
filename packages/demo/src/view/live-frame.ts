import { ABUSE, ABUSER } from '../traffic/population.ts'
import type { Count, IntervalTally } from '../traffic/tally.ts'
import { type ClusterView, clusterHead, limitedLine, storeLine } from './cluster-frame.ts'
import type { Colors } from './colors.ts'
import { bar, count, duration } from './format.ts'

/** The contents of a frame. Times are milliseconds. */
export interface LiveView extends ClusterView {
  readonly limit: number
  readonly globalLimit: number
  readonly interval: number
  /** The current interval, or the last complete one. */
  readonly current: IntervalTally
  readonly whole: boolean
  /** Earlier intervals, oldest first. */
  readonly past: readonly IntervalTally[]
  readonly events: readonly string[]
}

const BAR = 20
export const NOBODY: Count = { allowed: 0, rejected: 0, errors: 0 }

export function liveFrame(view: LiveView, colors: Colors): string {
  return [
    ...clusterHead(view, colors),
    `${colors.dim(`${view.whole ? 'the last' : 'this'} interval of ${duration(view.interval)}, allowed of limit`)}`,
    ...intervalBars(view, colors),
    '',
    pastLine(view, colors),
    storeLine(view, colors),
    limitedLine(view.status, colors),
    ...view.events.map((event) => colors.yellow(event)),
    '',
  ].join('\n')
}

function intervalBars({ current, limit, globalLimit }: LiveView, colors: Colors): string[] {
  const line = (name: string, { allowed, rejected }: Count, of: number): string =>
    `${name.padEnd(26)} ${bar(allowed, of, BAR, colors)} ${count(allowed).padStart(5)} of ${count(of).padEnd(6)} ${rejected > 0 ? colors.red(`${count(rejected)} rejected`) : ''}`
  const others = [...current.clients].filter(([client]) => client !== ABUSER).sort(([, a], [, b]) => b.allowed - a.allowed)
  const [busiest = ['', NOBODY] as const] = others
  return [
    line(`${ABUSER} (${ABUSE}× its limit)`, current.clients.get(ABUSER) ?? NOBODY, limit),
    line(busiest[0] === '' ? 'the others' : `${busiest[0]} (busiest other)`, busiest[1], limit),
    line('everyone', current.total, globalLimit),
  ]
}

function pastLine({ past, limit }: LiveView, colors: Colors): string {
  const allowed = past.slice(-8).map(({ clients }) => count(clients.get(ABUSER)?.allowed ?? 0))
  return `${colors.dim('before  ')} ${ABUSER} was allowed ${allowed.join(' ') || '–'} ${colors.dim(`of ${count(limit)} per interval`)}`
}
