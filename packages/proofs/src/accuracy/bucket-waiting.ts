import { type Arrival, ideal, meanWait, mostIn, poissonArrivals, waitTogether } from '@weir/bench/waiting/virtual'
import { tokenBucket } from '@weir/core'
import { atLeast, atMost, type Figure, type Goal, type GoalCase, percent, type Size } from './goal.ts'

/** A bucket of one unit, which is a pace. */
const LIMIT = 100
const INTERVAL = 1_000
const policy = { limit: LIMIT, interval: INTERVAL, algorithm: tokenBucket({ burst: 1 }) } as const
/** Requests of a flood, and the longest wait of other requests at twice the limit, in milliseconds. */
const FLOOD = 600
const DEADLINE = 1_000
/** Milliseconds that requests may wait longer than in one central queue, beside two round trips. */
const SLACK = 100
/** The most operations for a request: key writes of its key, and announcements of the store. */
const MOST_OPERATIONS = 1.5

interface Cluster {
  readonly nodes: number
  readonly roundTrip: number
}

const CLUSTERS: readonly Cluster[] = [1, 3, 12].flatMap((nodes) => [1, 20].map((roundTrip) => ({ nodes, roundTrip })))

/** Requests that wait in several processes for one bucket, compared with one central queue. */
export const bucketWaitingGoals: readonly Goal[] = [
  {
    id: 'B20',
    title: 'Bucket: requests that wait, 100 a second, burst 1',
    cases: (size) =>
      CLUSTERS.flatMap((cluster) => {
        const where = `${cluster.nodes} nodes, ${cluster.roundTrip} ms`
        return [
          measured(`a flood of ${FLOOD}, ${where}`, (seed) => flood(cluster, seed)),
          measured(`x0.95, ${where}`, (seed) => steady(cluster, seed, size)),
          measured(`x2, a deadline of ${DEADLINE} ms, ${where}`, (seed) => overload(cluster, seed, size)),
        ]
      }),
  },
]

function measured(name: string, measure: (seed: number) => Promise<readonly Figure[]>): GoalCase {
  return { name, scenarios: [], judge: () => [], measure }
}

async function flood({ nodes, roundTrip }: Cluster, seed: number): Promise<readonly Figure[]> {
  const arrivals = Array.from({ length: FLOOD }, (_, place) => ({ node: place % nodes, at: 0 }))
  const { went, operations: made } = await waitTogether({ policy, nodes, roundTrip, arrivals, seed })
  const means = Array.from({ length: nodes }, (_, node) => mean(went.filter((_at, place) => place % nodes === node)))
  return [
    peak(went, 104),
    atLeast('rate', percent((FLOOD - 1) / LIMIT / (Math.max(...went) / INTERVAL)), 99.5),
    later(arrivals, went, roundTrip),
    atMost("nodes' mean waits, longest of shortest", percent(Math.max(...means) / Math.min(...means)), 150),
    operations(made, arrivals),
  ]
}

async function steady({ nodes, roundTrip }: Cluster, seed: number, { intervals }: Size): Promise<readonly Figure[]> {
  const arrivals = arriving(0.95, nodes, seed, intervals)
  const { went, operations: made } = await waitTogether({ policy, nodes, roundTrip, arrivals, seed })
  return [peak(went, 108), later(arrivals, went, roundTrip), operations(made, arrivals)]
}

async function overload({ nodes, roundTrip }: Cluster, seed: number, { intervals }: Size): Promise<readonly Figure[]> {
  const arrivals = arriving(2, nodes, seed, intervals)
  const { went, operations: made } = await waitTogether({ policy, nodes, roundTrip, arrivals, seed, timeout: DEADLINE })
  const waits = went
    .flatMap((at, place) => (at < Number.POSITIVE_INFINITY ? at - (arrivals[place] as Arrival).at : []))
    .sort((a, b) => a - b)
  // While the queue fills up, waits are shorter than later.
  const [from, until] = [2 * INTERVAL, intervals * INTERVAL]
  const rate = went.filter((at) => at >= from && at < until).length / LIMIT / ((until - from) / INTERVAL)
  return [
    peak(went, 104),
    atLeast('rate', percent(rate), 99.5),
    atMost('rate', percent(rate), 100.5),
    atMost('p95 of the waits', waits[Math.floor(0.95 * waits.length)] ?? Number.NaN, DEADLINE + 150, 'ms'),
    operations(made, arrivals),
  ]
}

function arriving(load: number, nodes: number, seed: number, seconds: number): readonly Arrival[] {
  const parts = Array.from({ length: nodes }, () => 1)
  return poissonArrivals(load * LIMIT, seconds, parts, seed)
}

function peak(went: readonly number[], most: number): Figure {
  return atMost('most in any second', percent(mostIn(went.filter(Number.isFinite), INTERVAL) / LIMIT), most)
}

/** The additional wait of requests, compared with one central queue. */
function later(arrivals: readonly Arrival[], went: readonly number[], roundTrip: number): Figure {
  const more = meanWait(arrivals, went) - meanWait(arrivals, ideal(arrivals, LIMIT, INTERVAL, 'even'))
  return atMost('mean wait, beside one central queue', more, 2 * roundTrip + SLACK, 'ms')
}

function operations(count: number, arrivals: readonly Arrival[]): Figure {
  return atMost('operations for a request', count / arrivals.length, MOST_OPERATIONS, 'ops')
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
