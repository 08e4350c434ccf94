import * as Plot from '@observablehq/plot'
import {
  type Algorithm,
  createThrottler,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { manualClock } from '@weir/testing'
import { type Figure, whole } from './figure.ts'
import { COLORS, draw, grid } from './svg.ts'

const LIMIT = 20
const INTERVAL = 10_000
/** Milliseconds of one bar. */
const BAR = 500
const SECONDS = 45

const SHAPES: readonly (readonly [file: string, name: string, algorithm: Algorithm])[] = [
  ['fixed-window', 'fixedWindow()', fixedWindow()],
  ['fixed-window-first-request', "fixedWindow({ start: 'first-request' })", fixedWindow({ start: 'first-request' })],
  ['sliding-window', 'slidingWindow()', slidingWindow()],
  ['sliding-counter', 'slidingCounter()', slidingCounter()],
  ['sliding-log', 'slidingLog()', slidingLog()],
  ['token-bucket', 'tokenBucket({ burst: 8 })', tokenBucket({ burst: 8 })],
  ['token-bucket-warm-up', "tokenBucket({ burst: 8, warmUp: '10s' })", tokenBucket({ burst: 8, warmUp: '10s' })],
  ['leaky-bucket', 'leakyBucket({ burst: 8 })', leakyBucket({ burst: 8 })],
]

/** Times of the requests in milliseconds: a few, a flood around a boundary of the intervals, a pause, and twice the limit's rate. */
function* stream(): Generator<number> {
  for (let at = 1000; at < 7000; at += 1000) yield at
  for (let at = 8000; at < 12_000; at += 100) yield at
  for (let at = 25_000; at < 42_000; at += 250) yield at
}

interface Course {
  readonly offered: readonly number[]
  /** Times at which allowed requests continued. */
  readonly went: readonly number[]
}

/** The requests that each algorithm allows from the same sequence. */
export const algorithms: Figure = {
  name: 'algorithms',
  makes: ['algorithms', ...SHAPES.map(([file]) => `algorithm-${file}.svg`)],
  about: 'requests that each algorithm allows of the same stream',
  async make() {
    const charts: Record<string, string> = {}
    const rows = [['algorithm', 'allowed in all', 'most in any 10 s', 'most in any second', 'longest wait, s']]
    for (const [file, name, algorithm] of SHAPES) {
      const { longest, ...course } = await admissions(algorithm)
      charts[`algorithm-${file}.svg`] = chart(name, course)
      const { went } = course
      rows.push([`\`${name}\``, whole(went.length), whole(most(went, INTERVAL)), whole(most(went, 1000)), (longest / 1000).toFixed(1)])
    }
    return { charts, tables: { algorithms: rows } }
  },
}

async function admissions(algorithm: Algorithm): Promise<Course & { readonly longest: number }> {
  const clock = manualClock()
  const policy = { limit: LIMIT, interval: INTERVAL, algorithm, coordination: 'local' as const }
  const throttler = createThrottler({ policies: [policy], clock })
  // Aligns the intervals with the chart.
  await clock.advance(INTERVAL - (clock.now() % INTERVAL))
  const began = clock.now()
  const offered = [...stream()]
  const went: number[] = []
  let longest = 0
  for (const at of offered) {
    await clock.advance(began + at - clock.now())
    const { allowed, delayMs: delay } = throttler.check('key')
    if (!allowed) continue
    went.push(at + delay)
    longest = Math.max(longest, delay)
  }
  await throttler.close()
  return { offered, went, longest }
}

function most(times: readonly number[], length: number): number {
  return Math.max(...times.map((end) => times.filter((time) => time > end - length && time <= end).length))
}

/** Offered and allowed requests, by half a second. */
function chart(name: string, { offered, went }: Course): string {
  const bars = (times: readonly number[]) =>
    Array.from({ length: (SECONDS * 1000) / BAR }, (_, bar) => {
      return { from: (bar * BAR) / 1000, count: times.filter((time) => Math.floor(time / BAR) === bar).length }
    }).filter(({ count }) => count > 0)
  const shape = { x1: 'from', x2: ({ from }: { from: number }) => from + BAR / 1000, y: 'count', inset: 0.5 }
  return draw({
    label: `Requests, and the requests that ${name} allowed, by half a second. The limit is ${LIMIT} in 10 seconds`,
    height: 190,
    x: { label: 'seconds →', domain: [0, SECONDS], ticks: 9 },
    y: { label: '↑ requests in half a second', domain: [0, 5], ticks: 5 },
    marks: [
      grid({ ticks: 5 }),
      Plot.rectY(bars(offered), { ...shape, fill: COLORS.muted, fillOpacity: 0.3 }),
      Plot.rectY(bars(went), { ...shape, fill: COLORS.first }),
      Plot.ruleY([(LIMIT * BAR) / INTERVAL], { stroke: 'currentColor', strokeDasharray: '5 4' }),
      Plot.text([{ x: SECONDS, y: (LIMIT * BAR) / INTERVAL }], {
        x: 'x',
        y: 'y',
        text: () => "the limit's pace",
        dx: 8,
        textAnchor: 'start',
      }),
      Plot.text([{ x: SECONDS, y: 4.6 }], { x: 'x', y: 'y', text: () => 'requests', fill: COLORS.muted, dx: 8, textAnchor: 'start' }),
      Plot.text([{ x: SECONDS, y: 3.8 }], {
        x: 'x',
        y: 'y',
        text: () => 'allowed',
        fill: COLORS.first,
        fontWeight: 600,
        dx: 8,
        textAnchor: 'start',
      }),
    ],
  })
}
