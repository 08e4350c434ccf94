import * as Plot from '@observablehq/plot'
import { type PolicyOptions, tokenBucket } from '@weir/core'
import { poisson, type Scenario, type SimulationResult, simulate } from '@weir/testing'
import { type Figure, percent, whole } from './figure.ts'
import { COLORS, draw, grid } from './svg.ts'

const SMALL = { limit: 100, interval: 60_000 }
export const MIDDLE: { readonly limit: number; readonly interval: number } = { limit: 1000, interval: 10_000 }
const LARGE = { limit: 10_000, interval: 60_000 }

type Rule = PolicyOptions & { readonly limit: number }

/** Number of intervals to measure. Fewer if each has a million requests. */
function intervalsOf({ limit }: Rule, times: number): number {
  return limit * times >= 1_000_000 ? 8 : 30
}

/** A case in twelve processes, 1 ms from the store. All tables use it, so that one case has one figure. */
export function run(policy: Rule, times: number, more: Partial<Scenario> = {}): Promise<SimulationResult> {
  return simulate({ policy, nodes: 12, intervals: intervalsOf(policy, times), load: poisson(times), ...more })
}

/** The network for a round trip, whose latency is one way. */
function roundTrip(milliseconds: number): Partial<Scenario> {
  return { network: { latency: milliseconds / 2 } }
}

/** The accuracy to expect, by processes, limit and round trip. */
export const expected: Figure = {
  name: 'expected',
  makes: ['expected'],
  about: 'overshoot and store operations by processes, limit and round trip (some minutes)',
  async make() {
    const rows = [
      ['limit', 'processes', 'round trip', 'overshoot at ×1.1', 'at ×100', 'operations at ×0.1', 'at ×0.9', 'at ×1.1', 'at ×100'],
    ]
    for (const policy of [SMALL, MIDDLE, LARGE]) {
      for (const nodes of [1, 3, 12, 50]) {
        for (const trip of nodes === 12 ? [1, 10] : [1]) {
          const more = { nodes, ...roundTrip(trip) }
          const [tenth, below, above, flood] = await inTurn([0.1, 0.9, 1.1, 100], (times) => run(policy, times, more))
          rows.push([
            `${whole(policy.limit)} per ${policy.interval / 1000} s`,
            String(nodes),
            `${trip} ms`,
            percent(above?.overshoot.p95 ?? 0, 2),
            percent(flood?.overshoot.p95 ?? 0, 2),
            ...[tenth, below, above, flood].map((result) => whole(result?.operations ?? 0)),
          ])
        }
      }
    }
    return { tables: { expected: rows } }
  },
}

/** The effect of each choice of a policy. */
export const choices: Figure = {
  name: 'choices',
  makes: ['choices'],
  about: 'the effect of leases, spans and publish/subscribe',
  async make() {
    const settings: readonly (readonly [string, Rule, Partial<Scenario>])[] = [
      ['defaults: 6 spans, no cooldown', MIDDLE, {}],
      ['`spans: 2`', { ...MIDDLE, spans: 2 }, {}],
      ['`spans: 12`', { ...MIDDLE, spans: 12 }, {}],
      ["`coordination: 'leased'`", { ...MIDDLE, coordination: 'leased' }, {}],
      ['no publish/subscribe', MIDDLE, { network: { announcementLoss: 1 } }],
    ]
    const rows = [['policy', 'overshoot at ×1.1', 'at ×2', 'at ×100', 'operations at ×0.1', 'at ×0.9', 'at ×1.1', 'at ×100']]
    for (const [name, policy, more] of settings) {
      const loads = [0.1, 0.9, 1.1, 2, 100]
      const [tenth, below, above, double, flood] = await inTurn(loads, (times) => run(policy, times, more))
      rows.push([
        name,
        ...[above, double, flood].map((result) => percent(result?.overshoot.p95 ?? 0, 2)),
        ...[tenth, below, above, flood].map((result) => whole(result?.operations ?? 0)),
      ])
    }
    return { tables: { choices: rows } }
  },
}

/** The waits and the syncs of leases. */
export const leases: Figure = {
  name: 'leases',
  makes: ['leases'],
  about: 'which requests wait with leases, and how often processes sync',
  async make() {
    const rows = [['load', 'overshoot', 'allowed requests that wait', 'the same, 100 per 60 s', 'syncs', "syncs with `'background'`"]]
    for (const times of [0.5, 0.9, 1.1, 2, 100]) {
      const { overshoot, waited, operations } = await run({ ...MIDDLE, coordination: 'leased' }, times)
      const small = await run({ ...SMALL, coordination: 'leased' }, times)
      const background = await run(MIDDLE, times)
      const waits = [waited, small.waited].map((part) => percent(part, 2))
      rows.push([`×${times}`, percent(overshoot.p95, 2), ...waits, whole(operations), whole(background.operations)])
    }
    return { tables: { leases: rows } }
  },
}

/** The effect of increasing load. */
export const load: Figure = {
  name: 'load',
  makes: ['overshoot-by-load.svg', 'operations-by-load.svg'],
  about: 'overshoot and store operations by offered load',
  async make() {
    const coordinations = { background: {}, periodic: { coordination: 'periodic' } } as const
    const overshoots: { name: string; offered: number; overshoot: number }[] = []
    for (const [name, policy] of Object.entries(coordinations)) {
      for (const offered of [1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100]) {
        const { overshoot } = await run({ ...MIDDLE, ...policy }, offered)
        overshoots.push({ name, offered, overshoot: overshoot.mean })
      }
    }
    const operations: { name: string; offered: number; operations: number }[] = []
    for (const nodes of [3, 12, 50]) {
      for (const offered of [0.2, 0.3, 0.5, 0.8, 1, 1.2, 2, 5, 10, 20, 50, 100]) {
        const result = await run(MIDDLE, offered, { nodes })
        if (result.operations >= 1) operations.push({ name: `${nodes} processes`, offered, operations: result.operations })
      }
    }
    return { charts: { 'overshoot-by-load.svg': overshootChart(overshoots), 'operations-by-load.svg': operationsChart(operations) } }
  },
}

/** The overshoot by round trip to the store. */
export const distance: Figure = {
  name: 'distance',
  makes: ['overshoot-by-round-trip.svg'],
  about: 'overshoot by round trip to the store',
  async make() {
    const points: { name: string; trip: number; overshoot: number }[] = []
    for (const policy of [MIDDLE, LARGE]) {
      for (const times of [2, 20]) {
        for (const trip of [0.2, 1, 2, 5, 10, 15, 20]) {
          const result = await run(policy, times, { ...roundTrip(trip), intervals: 20 })
          const name = `${whole(policy.limit)} per ${policy.interval / 1000} s, ×${times}`
          points.push({ name, trip, overshoot: result.overshoot.mean })
        }
      }
    }
    return { charts: { 'overshoot-by-round-trip.svg': distanceChart(points) } }
  },
}

/** The rate that a flood of twenty times the limit gets from processes far from their store, at first and in the long run. */
export const farRegions: Figure = {
  name: 'far-regions',
  makes: ['far-regions', 'rate-by-round-trip.svg'],
  about: "a flood on fixed windows, token buckets, leases and 'central', whose store is far away (some minutes)",
  async make() {
    // Keeps processes from allowing requests by an estimate while the store is only slow.
    const patient = { storeTimeout: '1s', failMode: 'closed' } as const
    const policies: Readonly<Record<string, readonly [Rule, Partial<Scenario>]>> = {
      'fixedWindow()': [MIDDLE, {}],
      'tokenBucket()': [{ ...MIDDLE, algorithm: tokenBucket() }, {}],
      'tokenBucket({ earlyDrop: true })': [{ ...MIDDLE, algorithm: tokenBucket({ earlyDrop: true }) }, { shortcut: false }],
      "'leased'": [{ ...MIDDLE, coordination: 'leased', ...patient }, {}],
      "'central'": [{ ...MIDDLE, coordination: 'central', ...patient }, {}],
    }
    const rows = [
      ['policy', 'round trip', 'allowed in the first interval', 'in the long run', 'of those that are allowed wait', 'operations'],
    ]
    const points: { name: string; trip: number; overshoot: number }[] = []
    for (const [name, [policy, more]] of Object.entries(policies)) {
      for (const trip of [1, 10, 50, 100, 250]) {
        const first = await run(policy, 20, { ...roundTrip(trip), intervals: 1, warmup: 0, ...more })
        const { allowed, intervals, operations, waited } = await run(policy, 20, { ...roundTrip(trip), intervals: 60, warmup: 8, ...more })
        const rate = allowed / intervals / MIDDLE.limit
        // The line of `central` would be the same as the line of leases.
        if (policy.coordination !== 'central') points.push({ name, trip, overshoot: rate })
        rows.push(rowOf(name, trip, first.allowed, rate, waited, operations))
      }
    }
    return { tables: { 'far-regions': rows }, charts: { 'rate-by-round-trip.svg': rateChart(points) } }
  },
}

function rowOf(name: string, trip: number, first: number, rate: number, waited: number, operations: number): string[] {
  const waits = waited === 0 ? 'none' : waited > 0.9995 ? 'all' : percent(waited)
  return [`\`${name}\``, `${trip} ms`, percent(first / MIDDLE.limit, 0), percent(rate), waits, whole(operations)]
}

async function inTurn<In, Out>(list: readonly In[], make: (one: In) => Promise<Out>): Promise<Out[]> {
  const made: Out[] = []
  for (const one of list) made.push(await make(one))
  return made
}

const TIMES = [0.2, 1, 2, 10, 20, 100]

/** The scale of offered load. */
function offered(from: number): Plot.ScaleOptions {
  return { label: 'offered, as a multiple of the limit →', type: 'log', domain: [from, 100] }
}

/** The axis with its ticks. Created explicitly, because an axis derived from the scale leaves some ticks out. */
function offeredAxis(from: number): Plot.Markish {
  return Plot.axisX(
    TIMES.filter((times) => times >= from),
    { tickFormat: (times: number) => `×${times}`, label: 'offered, as a multiple of the limit →' },
  )
}

function overshootChart(points: readonly { name: string; offered: number; overshoot: number }[]): string {
  return draw({
    label: 'Mean overshoot by offered load, in the background and periodic: twelve processes, 1000 per 10 seconds',
    marginRight: 180,
    x: offered(1),
    y: { label: '↑ overshoot, mean', domain: [0, 0.4], tickFormat: (value: number) => `${Math.round(value * 100)} %` },
    marks: [
      grid(),
      offeredAxis(1),
      ...series(points, 'periodic', 'offered', 'overshoot', COLORS.second),
      ...series(points, 'background', 'offered', 'overshoot', COLORS.first, 'background (default)'),
    ],
  })
}

function operationsChart(points: readonly { name: string; offered: number; operations: number }[]): string {
  const colors: Readonly<Record<string, string>> = {
    '50 processes': COLORS.second,
    '12 processes': COLORS.first,
    '3 processes': COLORS.third,
  }
  const ticks = [1, 10, 100, 1000, 10_000, 100_000]
  return draw({
    label: 'Store operations per key and interval by offered load, for 3, 12 and 50 processes: 1000 per 10 seconds',
    marginLeft: 72,
    x: offered(0.2),
    y: {
      label: '↑ store operations per key and interval',
      type: 'log',
      domain: [1, 100_000],
      ticks,
      tickFormat: (value: number) => whole(value),
    },
    marks: [
      grid({ ticks }),
      offeredAxis(0.2),
      Plot.line(
        TIMES.map((offered) => ({ offered, operations: offered * MIDDLE.limit })),
        { x: 'offered', y: 'operations', stroke: 'currentColor', strokeDasharray: '5 4' },
      ),
      Plot.text([{ x: 100, y: 100_000 }], { x: 'x', y: 'y', text: () => 'one per request', dx: 8, textAnchor: 'start' }),
      ...Object.entries(colors).flatMap(([name, color]) => series(points, name, 'offered', 'operations', color)),
    ],
  })
}

function distanceChart(points: readonly { name: string; trip: number; overshoot: number }[]): string {
  const colors = [COLORS.second, COLORS.first, COLORS.third, COLORS.muted]
  const names = [...new Set(points.map(({ name }) => name))].sort((a, b) => last(points, b) - last(points, a))
  return draw({
    label: 'Mean overshoot by round trip to the store, for two limits and two loads: twelve processes',
    marginRight: 190,
    x: { label: 'round trip to the store, ms →', domain: [0, 20] },
    y: { label: '↑ overshoot, mean', domain: [0, 0.07], tickFormat: (value: number) => `${Math.round(value * 100)} %` },
    marks: [grid(), ...names.flatMap((name, index) => series(points, name, 'trip', 'overshoot', colors[index] ?? 'currentColor'))],
  })
}

function rateChart(points: readonly { name: string; trip: number; overshoot: number }[]): string {
  const colors = [COLORS.second, COLORS.first]
  // The lines of early drop and of leases would lie on the line of buckets.
  const names = ['fixedWindow()', 'tokenBucket()']
  return draw({
    label: 'Requests allowed in the long run at twenty times the limit, by round trip to the store: twelve processes',
    marginRight: 120,
    x: { label: 'round trip to the store, ms →', domain: [0, 250] },
    y: { label: '↑ allowed, of the limit', domain: [0, 2], tickFormat: (value: number) => `${Math.round(value * 100)} %` },
    marks: [grid(), ...names.flatMap((name, index) => series(points, name, 'trip', 'overshoot', colors[index] ?? 'currentColor'))],
  })
}

function last(points: readonly { name: string; overshoot: number }[], name: string): number {
  return points.filter((point) => point.name === name).at(-1)?.overshoot ?? 0
}

/** One line with its points, and its name after the last point. */
function series<Datum extends { readonly name: string }>(
  points: readonly Datum[],
  name: string,
  x: keyof Datum & string,
  y: keyof Datum & string,
  color: string,
  text = name,
): Plot.Markish[] {
  const own = points.filter((point) => point.name === name)
  return [
    Plot.line(own, { x, y, stroke: color, strokeWidth: 2.2 }),
    Plot.dot(own, { x, y, fill: color, r: 3 }),
    Plot.text(own.slice(-1), { x, y, text: () => text, fill: color, textAnchor: 'start', fontWeight: 600, dx: 8 }),
  ]
}
