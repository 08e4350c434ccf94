import { type PolicyOptions, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import { type Course, poisson } from '@weir/testing'
import { numberOf, type Settings } from '../settings/settings.ts'
import { type Admissions, admissions, countIn, mostIn } from './admissions.ts'
import type { CurvesOutcome } from './curves.ts'
import { fingerprintOf } from './fingerprint.ts'
import { intervalOf } from './scenario.ts'

/** The boundary in the middle of the attack, in intervals. */
const BOUNDARY = 2
/** Length of the attack in intervals. */
const LASTS = 1
const INTERVALS = 4
/** Points of a curve for each interval. */
const POINTS = 60

interface Shape {
  readonly name: string
  readonly options: Partial<PolicyOptions>
  /** Whether the algorithm counts in one process, because its counts can't be synced. */
  readonly alone?: true
}

const SHAPES: readonly Shape[] = [
  { name: 'fixedWindow()', options: {} },
  { name: 'slidingCounter(), two windows', options: { algorithm: slidingCounter(), coordination: 'periodic' } },
  { name: 'slidingWindow()', options: { algorithm: slidingWindow() } },
  { name: 'slidingLog(), one process', options: { algorithm: slidingLog(), coordination: 'local' }, alone: true },
  { name: 'tokenBucket()', options: { algorithm: tokenBucket() } },
  { name: "fixedWindow(), 'leased'", options: { coordination: 'leased', storeTimeout: '1s' } },
]

/** A flood that begins before a boundary of the intervals and ends after it, on each algorithm. */
export async function runStraddle(settings: Settings): Promise<CurvesOutcome> {
  const interval = intervalOf(settings)
  const limit = numberOf(settings, 'limit')
  const begin = BOUNDARY - numberOf(settings, 'lead')
  const course: Course = (position) => {
    if (position < begin) return { times: 0, until: begin }
    if (position < begin + LASTS) return { times: numberOf(settings, 'load'), until: begin + LASTS }
    return { times: 0, until: Number.POSITIVE_INFINITY }
  }
  const found: [Shape, Admissions][] = []
  for (const shape of SHAPES) {
    const scenario = {
      policy: { limit, interval, ...shape.options },
      nodes: shape.alone ? 1 : numberOf(settings, 'nodes'),
      intervals: INTERVALS,
      warmup: 0,
      load: poisson(course),
      network: { latency: numberOf(settings, 'rtt') / 2 },
      seed: numberOf(settings, 'seed'),
    }
    found.push([shape, await admissions(scenario)])
  }
  const moments = Array.from({ length: 3 * POINTS }, (_, index) => (index / POINTS - 1) * interval)
  return {
    kind: 'curves',
    title: 'Allowed in the interval before each moment',
    unit: `requests, with a limit of ${limit}`,
    x: { label: 'seconds after the boundary', values: moments.map((moment) => Number((moment / 1000).toFixed(3))) },
    y: 'whole',
    limit,
    columns: [
      ['Most in any interval', 'whole'],
      ['Above the limit', 'part'],
      ['Allowed in total', 'whole'],
      ['Waited', 'part'],
    ],
    rows: found.map(([{ name }, { times, result }]) => {
      const most = mostIn(times, interval)
      const at = (moment: number) => BOUNDARY * interval + moment
      return {
        name,
        curve: moments.map((moment) => countIn(times, at(moment) - interval, at(moment))),
        figures: [most, Math.max(0, most / limit - 1), times.length, result.waited],
      }
    }),
    digest: fingerprintOf(found.map(([, { result }]) => result.digest)),
  }
}
