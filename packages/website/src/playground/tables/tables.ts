import { lengthOf } from '../runs/agreement.ts'
import type { CurvesOutcome, Unit } from '../runs/curves.ts'
import type { LanesOutcome } from '../runs/lanes.ts'
import type { PolicyOutcome } from '../runs/policy.ts'
import type { LogOutcome } from '../runs/replay-log.ts'
import type { Outcome } from '../runs/run.ts'
import type { StreamOutcome } from '../runs/stream.ts'
import { duration, percent, plural, short, whole } from './format.ts'

/** Figures of a run as text, for the page and the command. */
export interface Table {
  readonly name: string
  readonly caption?: string
  /** Heads of the columns. A table of two columns may have none. */
  readonly columns: readonly string[]
  /** The first cell of each row is its subject. */
  readonly rows: readonly (readonly string[])[]
  /** Whether the subjects of rows are code. */
  readonly code?: true
}

export const WRITTEN: Readonly<Record<Unit, (value: number) => string>> = { whole, part: percent, short, time: duration }

export function tablesOf(outcome: Outcome): readonly Table[] {
  switch (outcome.kind) {
    case 'lanes':
      return [waysTable(outcome)]
    case 'curves':
      return [curvesTable(outcome)]
    case 'stream':
      return [streamTable(outcome)]
    case 'policy':
      return [...(outcome.log === undefined ? [] : [logTable(outcome.log)]), policyTable(outcome)]
  }
}

export function waysTable({ ways }: LanesOutcome): Table {
  return {
    name: 'Three ways to count',
    columns: [
      'Counted by',
      'Allowed, of the exact limit',
      'Worst interval, above the limit',
      'Rejected wrongly',
      'Key writes per request',
      'Added latency',
    ],
    rows: ways.map(({ name, allowedOfExact, worst, falselyRejected, operations, wait }) => [
      name,
      percent(allowedOfExact),
      percent(worst),
      percent(falselyRejected),
      short(operations),
      wait === 0 ? 'none' : duration(wait),
    ]),
  }
}

export function curvesTable({ columns, rows }: CurvesOutcome): Table {
  return {
    name: 'Results',
    columns: ['Limiter', ...columns.map(([label]) => label)],
    rows: rows.map(({ name, figures }) => [name, ...figures.map((figure, index) => WRITTEN[columns[index]?.[1] ?? 'short'](figure))]),
    code: true,
  }
}

export function streamTable({ came, rows }: StreamOutcome): Table {
  return {
    name: 'Results',
    caption: `${whole(sum(came))} requests. The broken line is the limit's pace.`,
    columns: ['Algorithm', 'Allowed', 'Most in any interval', 'Most in a twentieth of it', 'Longest wait'],
    rows: rows.map(({ name, allowed, mostInInterval, mostAtOnce, longestWait }) => [
      name,
      whole(allowed),
      whole(mostInInterval),
      whole(mostAtOnce),
      longestWait === 0 ? 'none' : duration(longestWait),
    ]),
    code: true,
  }
}

const EXCEEDED = {
  overshoot: 'Above the limit, in an interval',
  worstWindow: 'Above the limit, in any stretch of an interval’s length',
  debt: 'In the bucket above its capacity',
} as const

export function policyTable(outcome: PolicyOutcome): Table {
  const { understood, exceeded, yardstick, intervals, requests } = outcome
  const { limit, interval, algorithm, coordination, bytesPerKey } = understood
  return {
    name: 'Figures',
    caption: `${whole(limit)} per ${lengthOf(interval)}, ${algorithm}, '${coordination}'. ${whole(intervals)} intervals with ${whole(requests)} requests, after two of warm-up`,
    columns: [],
    rows: [
      [`${EXCEEDED[yardstick]}: half of the time at most (p50)`, percent(exceeded.p50)],
      ['The same, 95 % of the time at most (p95)', percent(exceeded.p95)],
      ['The same, at most', percent(exceeded.max)],
      ['Rejected wrongly, of all requests', percent(outcome.wronglyRejected)],
      ['Allowed, of the exact limit', percent(outcome.allowedOfExact)],
      ['Waited, of the allowed requests', percent(outcome.waited)],
      ['Key writes per key and interval, all processes', short(outcome.operations)],
      ['Memory per key and process, without the key itself', `${bytesPerKey} bytes`],
    ],
  }
}

/** The result of a log in a sentence. */
export function logAnswer({ lines, requests, rejected, clients, limited }: LogOutcome): string {
  if (requests === 0) return `No request in ${plural(lines, 'line')}. The page reads the Common and the Combined Log Format.`
  if (rejected === 0) return `Rejects none of ${plural(requests, 'request')} from ${plural(clients, 'client')}.`
  return `Rejects ${whole(rejected)} of ${plural(requests, 'request')} (${percent(rejected / requests)}), from ${whole(limited)} of ${plural(clients, 'client')}.`
}

/** The part of a log that was left out. Undefined if all lines were replayed. */
export function logCut({ lines, replayed }: LogOutcome): string | undefined {
  return lines === replayed
    ? undefined
    : `The log is too long for a page: only the first ${whole(replayed)} of ${whole(lines)} lines were replayed.`
}

export function logTable({ replayed, requests, limited, worst }: LogOutcome): Table {
  const listed = worst.length < limited ? `The ${whole(worst.length)} clients with the most rejections, of ${whole(limited)}. ` : ''
  return {
    name: 'Clients of the log',
    caption: `${listed}Requests in ${whole(requests)} of ${plural(replayed, 'line')}, counted by client in one process`,
    columns: worst.length === 0 ? [] : ['Client', 'Requests', 'Rejected'],
    rows: worst.map((entry) => [entry.client.slice(0, 80), whole(entry.requests), whole(entry.rejected)]),
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0)
}
