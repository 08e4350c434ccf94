import * as Plot from '@observablehq/plot'
import { createThrottler, type PolicyOptions, slidingCounter, slidingWindow } from '@weir/core'
import { type Course, type NodeContext, poisson, type SimulatedNode, simulate } from '@weir/testing'
import { type Figure, whole } from './figure.ts'
import { COLORS, draw, grid } from './svg.ts'

const LIMIT = 1000
const INTERVAL = 10_000
/** The algorithms to compare. */
const SHAPES: Readonly<Record<string, Partial<PolicyOptions>>> = {
  fixed: {},
  'two windows': { algorithm: slidingCounter(), coordination: 'periodic' },
  sliding: { algorithm: slidingWindow() },
}
const TITLES = {
  fixed: 'fixed',
  'two windows': 'two windows (`slidingCounter()`)',
  sliding: 'sliding',
}
const SERIES = { fixed: COLORS.second, 'two windows': COLORS.third, sliding: COLORS.first }

/** Ten times the limit per interval, from 0.1 intervals before a boundary until 0.9 after it. No requests before and after. */
const BOUNDARY = 2
const course: Course = (position) => {
  if (position < BOUNDARY - 0.1) return { times: 0, until: BOUNDARY - 0.1 }
  if (position < BOUNDARY + 0.9) return { times: 10, until: BOUNDARY + 0.9 }
  return { times: 0, until: Number.POSITIVE_INFINITY }
}

/** Units allowed within the interval's length before a moment, in seconds after the boundary. */
interface Rolling {
  readonly name: string
  readonly seconds: number
  readonly allowed: number
}

/** The same attack across a boundary of the intervals, on each algorithm. */
export const straddling: Figure = {
  name: 'straddling',
  makes: ['straddling', 'straddling-attack.svg'],
  about: 'an attack that straddles a boundary, on each window shape',
  async make() {
    const rolling: Rolling[] = []
    const rows = [['window', 'most allowed in any 10 s, one process', 'three processes', 'twelve processes']]
    for (const [name, shape] of Object.entries(SHAPES)) {
      const counts: Rolling[][] = []
      for (const nodes of [1, 3, 12])
        counts.push(rollingCounts(name, await admissions({ limit: LIMIT, interval: INTERVAL, ...shape }, nodes)))
      // The chart shows one process, so that only the algorithm makes a difference.
      rolling.push(...(counts[0] ?? []))
      rows.push([TITLES[name as keyof typeof TITLES], ...counts.map((count) => whole(Math.max(...count.map(({ allowed }) => allowed))))])
    }
    return { charts: { 'straddling-attack.svg': chart(rolling) }, tables: { straddling: rows } }
  },
}

/** Times of allowed units, in milliseconds after the boundary. */
async function admissions(policy: PolicyOptions, nodes: number): Promise<number[]> {
  const times: number[] = []
  let origin: number | undefined
  const node = (context: NodeContext): SimulatedNode => {
    const { clock, store, random } = context
    origin ??= (Math.ceil(clock.now() / INTERVAL) + BOUNDARY) * INTERVAL
    const throttler = createThrottler({ policies: [policy], clock, store, random })
    return {
      nodeId: throttler.nodeId,
      check(key, cost) {
        const decision = throttler.check(key, cost)
        if (decision.allowed) times.push(clock.now() - (origin as number))
        return decision
      },
      start: () => throttler.start(),
      close: () => throttler.close(),
    }
  }
  await simulate({ policy, nodes, intervals: BOUNDARY + 3, warmup: 0, load: poisson(course), node })
  return times.sort((a, b) => a - b)
}

function rollingCounts(name: string, times: readonly number[]): Rolling[] {
  const points: Rolling[] = []
  for (let at = -2000; at <= 20_000; at += 50) {
    points.push({ name, seconds: at / 1000, allowed: times.filter((time) => time > at - INTERVAL && time <= at).length })
  }
  return points
}

function chart(rolling: readonly Rolling[]): string {
  return draw({
    label: 'Units allowed in the last 10 seconds, during an attack that straddles a boundary, for three window shapes',
    x: { label: 'seconds after the boundary →', domain: [-2, 20] },
    y: { label: '↑ allowed in the last 10 s', domain: [0, 2300], ticks: 5, tickFormat: (value: number) => whole(value) },
    marks: [
      grid({ ticks: 5 }),
      Plot.rectX([{}], { x1: -1, x2: 9, y1: 0, y2: 2300, fill: COLORS.muted, fillOpacity: 0.12 }),
      Plot.text([{ x: 4, y: 2200 }], { x: 'x', y: 'y', text: () => 'the attack: 10 × the limit', fill: COLORS.muted }),
      Plot.ruleY([LIMIT], { stroke: 'currentColor', strokeDasharray: '5 4' }),
      Plot.text([{ x: 20, y: LIMIT }], { x: 'x', y: 'y', text: () => 'the limit', dx: 8, textAnchor: 'start' }),
      Plot.line(rolling, {
        x: 'seconds',
        y: 'allowed',
        stroke: ({ name }: Rolling) => SERIES[name as keyof typeof SERIES],
        z: 'name',
        strokeWidth: 2.2,
      }),
      ...labels(),
    ],
  })
}

/** The name of each series beside its line, at a place without other lines. */
function labels(): Plot.Markish[] {
  const places: Readonly<Record<string, readonly [number, number]>> = {
    fixed: [4.2, 1920],
    'two windows': [5.2, 1430],
    sliding: [3.8, 920],
  }
  return Object.entries(places).map(([name, [x, y]]) =>
    Plot.text([{ x, y }], {
      x: 'x',
      y: 'y',
      text: () => name,
      fill: SERIES[name as keyof typeof SERIES],
      fontWeight: 600,
      textAnchor: 'start',
    }),
  )
}
