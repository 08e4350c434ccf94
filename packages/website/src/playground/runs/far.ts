import { type PolicyOptions, tokenBucket } from '@weir/core'
import { poisson } from '@weir/testing'
import { numberOf, type Settings } from '../settings/settings.ts'
import { type Admissions, admissions, countIn } from './admissions.ts'
import type { CurvesOutcome } from './curves.ts'
import { fingerprintOf } from './fingerprint.ts'
import { intervalOf } from './scenario.ts'

const INTERVALS = 8
/** First intervals that are not part of the long run. */
const FIRST = 2
/** Points of a curve for each interval. */
const POINTS = 25
/** Milliseconds from a near process to the store, one way. */
const NEAR = 0.5

/** A flood on processes far from the store: their overshoot, and its effect in the long run. */
export async function runFar(settings: Settings): Promise<CurvesOutcome> {
  const interval = intervalOf(settings)
  const limit = numberOf(settings, 'limit')
  const burst = numberOf(settings, 'burst')
  const policies: readonly (readonly [string, Partial<PolicyOptions>])[] = [
    ['fixedWindow()', {}],
    [`tokenBucket({ burst: ${burst} })`, { algorithm: tokenBucket({ burst }) }],
    [`tokenBucket({ burst: ${burst}, earlyDrop: true })`, { algorithm: tokenBucket({ burst, earlyDrop: true }) }],
    ["fixedWindow(), 'leased'", { coordination: 'leased', storeTimeout: '1s' }],
  ]
  const nodes = numberOf(settings, 'nodes')
  const found: [string, Admissions][] = []
  for (const [name, options] of policies) {
    const scenario = {
      policy: { limit, interval, ...options },
      nodes,
      intervals: INTERVALS,
      warmup: 0,
      load: poisson(numberOf(settings, 'load')),
      network: { latency: NEAR, far: { nodes: Math.min(nodes, numberOf(settings, 'far')), latency: numberOf(settings, 'rtt') / 2 } },
      seed: numberOf(settings, 'seed'),
      // A bucket with early drop rejects by chance, so a rejection does not predict the next one.
      shortcut: options.algorithm === undefined && options.coordination === undefined,
    }
    found.push([name, await admissions(scenario)])
  }
  const moments = Array.from({ length: INTERVALS * POINTS + 1 }, (_, index) => (index * interval) / POINTS)
  return {
    kind: 'curves',
    title: "Allowed ahead of the limit's pace",
    unit: 'requests since the start, minus the limit for that time',
    x: { label: 'seconds', values: moments.map((moment) => Number((moment / 1000).toFixed(3))) },
    y: 'whole',
    limit,
    columns: [
      ['Allowed in the first interval', 'part'],
      ['In the long run', 'part'],
      ['Waited', 'part'],
      ['Key writes per interval', 'short'],
    ],
    rows: found.map(([name, { times, result }]) => {
      let passed = 0
      return {
        name,
        curve: moments.map((moment) => {
          while (passed < times.length && (times[passed] as number) <= moment) passed++
          return Math.round(passed - (limit * moment) / interval)
        }),
        figures: [
          countIn(times, 0, interval) / limit,
          countIn(times, FIRST * interval, INTERVALS * interval) / (limit * (INTERVALS - FIRST)),
          result.waited,
          result.operations,
        ],
      }
    }),
    digest: fingerprintOf(found.map(([, { result }]) => result.digest)),
  }
}
