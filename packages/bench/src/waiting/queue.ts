import { type AnyPolicyOptions, leakyBucket } from '@weir/core'
import { type Goal, type Report, type Row, round } from '../harness/report.ts'
import { ideal, meanWait, mostIn, poissonArrivals, type WaitingScenario, waitTogether } from './virtual.ts'

const LIMIT = 100
const SECOND = 1_000

/** A way to let requests of several processes wait, compared with one central queue. */
export interface Way {
  readonly name: string
  readonly policy: AnyPolicyOptions
  readonly pace: 'even' | 'windows'
}

export const WAYS: readonly Way[] = [
  { name: "'leased'", policy: { limit: LIMIT, interval: SECOND, coordination: 'leased' }, pace: 'windows' },
  { name: "'central'", policy: { limit: LIMIT, interval: SECOND, coordination: 'central' }, pace: 'windows' },
  { name: "'background'", policy: { limit: LIMIT, interval: SECOND }, pace: 'windows' },
  {
    name: "'background', leakyBucket()",
    policy: { limit: LIMIT, interval: SECOND, algorithm: leakyBucket() },
    pace: 'even',
  },
  {
    name: "'central', leakyBucket()",
    policy: { limit: LIMIT, interval: SECOND, algorithm: leakyBucket(), coordination: 'central' },
    pace: 'even',
  },
]

export interface Compared {
  readonly wait: number
  readonly idealWait: number
  /** The most requests that started within one second. */
  readonly most: number
  /** The number of requests that had started by the end of the arrivals, here and in the central queue. */
  readonly went: number
  readonly idealWent: number
  /** Calls to the store for each request. */
  readonly exchanges: number
}

/** Compares the same requests in several processes and in one central queue. */
export async function compare({ policy, pace }: Way, load: number, nodes: number, roundTrip: number, seconds: number): Promise<Compared> {
  const arrivals = poissonArrivals(
    LIMIT * load,
    seconds,
    Array.from({ length: nodes }, () => 1),
    SEED,
  )
  const { went, exchanges } = await waitTogether({ policy, nodes, roundTrip, arrivals, seed: SEED })
  const best = ideal(arrivals, LIMIT, SECOND, pace)
  const by = (times: readonly number[]) => times.filter((time) => time < seconds * SECOND).length
  return {
    wait: meanWait(arrivals, went),
    idealWait: meanWait(arrivals, best),
    most: mostIn(went, SECOND),
    went: by(went),
    idealWent: by(best),
    exchanges: exchanges / arrivals.length,
  }
}

const SEED = 7

/** The longest acceptable mean wait. */
export function mayWait({ idealWait }: Compared, roundTrip: number): number {
  return 1.1 * idealWait + 2 * roundTrip
}

/** The waits in several processes and in one central queue, in virtual time. */
export async function central(quick: boolean): Promise<Report> {
  const seconds = quick ? 20 : 60
  const rows: Row[] = []
  const goals: Goal[] = []
  for (const way of WAYS) {
    for (const nodes of [1, 3, 12]) {
      for (const roundTrip of [1, 20]) {
        for (const load of [0.5, 0.9, 1.2]) {
          const found = await compare(way, load, nodes, roundTrip, seconds)
          rows.push({
            way: way.name,
            nodes,
            'round trip, ms': roundTrip,
            load: `x${load}`,
            'mean wait, ms': round(found.wait),
            'central queue, ms': round(found.idealWait),
            'most in any second': found.most,
            'went, part of the central queue': round(found.went / found.idealWent),
            'exchanges for a request': round(found.exchanges),
          })
          const what = `${way.name}, ${nodes} nodes, ${roundTrip} ms, x${load}`
          goals.push({ what: `${what}: mean wait`, value: found.wait, most: round(mayWait(found, roundTrip)) })
          if (load > 1)
            goals.push({ what: `${what}: part of the limit that was not used`, value: 1 - found.went / found.idealWent, most: 0.02 })
        }
      }
    }
  }
  return { title: `Requests that wait for ${LIMIT} a second, at nodes and in one central queue, in virtual time`, rows, goals }
}

/** The load of each of twelve processes, as parts of the whole. */
export const UNEVEN: readonly number[] = [1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 12]

/** The number of started requests of each process, relative to its number with one central queue. */
export async function shares({ policy, pace }: Way, load: number, roundTrip: number, seconds: number): Promise<readonly number[]> {
  const arrivals = poissonArrivals(LIMIT * load, seconds, UNEVEN, SEED)
  const { went } = await waitTogether({ policy, nodes: UNEVEN.length, roundTrip, arrivals, seed: SEED })
  const best = ideal(arrivals, LIMIT, SECOND, pace)
  // The beginning is left out, because the queues are short then.
  const from = (seconds * SECOND) / 4
  const served = (times: readonly number[], node: number): number =>
    arrivals.filter((arrival, i) => arrival.node === node && (times[i] as number) >= from && (times[i] as number) < seconds * SECOND).length
  return UNEVEN.map((_, node) => served(went, node) / served(best, node))
}

/** Whether processes with queues of different lengths are served in proportion to their requests. */
export async function fairness(quick: boolean): Promise<Report> {
  // A shorter time has too few requests of the processes with the least traffic.
  const seconds = quick ? 60 : 200
  const rows: Row[] = []
  const goals: Goal[] = []
  for (const way of WAYS) {
    for (const roundTrip of [1, 20]) {
      for (const load of [1.2, 2]) {
        const found = await shares(way, load, roundTrip, seconds)
        const [least, most] = [Math.min(...found), Math.max(...found)]
        rows.push({ way: way.name, 'round trip, ms': roundTrip, load: `x${load}`, least: round(least), most: round(most) })
        const worst = Math.max(most - 1, 1 - least)
        goals.push({ what: `${way.name}, ${roundTrip} ms, x${load}: distance from that`, value: worst, most: 0.2 })
      }
    }
  }
  return {
    title: 'Twelve nodes that get 1 to 12 parts of an overload: served, in parts of what each would be in one central queue',
    rows,
    goals,
  }
}

/**
 * A flood with the same number of requests in each process. Returns the longest mean wait of a process divided by the shortest, and
 * the calls to the store per request.
 */
export async function flood(policy: WaitingScenario['policy'], nodes: number, roundTrip: number, begin: number) {
  // Requests come a microsecond apart, so that they have an order.
  const arrivals = Array.from({ length: FLOOD }, (_, i) => ({ node: i % nodes, at: begin + i / 1_000 }))
  const { went, exchanges } = await waitTogether({ policy, nodes, roundTrip, arrivals, seed: SEED })
  const waits = Array.from({ length: nodes }, (_, node) => {
    const own = arrivals.flatMap((arrival, i) => (arrival.node === node ? [(went[i] as number) - arrival.at] : []))
    return own.reduce((sum, wait) => sum + wait, 0) / own.length
  })
  return { unfair: Math.max(...waits) / Math.min(...waits), exchanges: exchanges / FLOOD, most: mostIn(went, SECOND) }
}

const FLOOD = 600

/** Whether processes wait equally long in one great flood. */
export async function floods(): Promise<Report> {
  const rows: Row[] = []
  for (const { name, policy } of WAYS) {
    for (const roundTrip of [1, 20]) {
      const after = async (part: number) => round((await flood(policy, UNEVEN.length, roundTrip, part * SECOND)).unfair)
      rows.push({
        way: name,
        'round trip, ms': roundTrip,
        'at the begin of a second': await after(0),
        'after 0.3 s': await after(0.3),
        'after 0.9 s': await after(0.9),
      })
    }
  }
  return {
    title: `${FLOOD} requests at once, the same number at each of twelve nodes: the longest mean wait of a node, times the shortest`,
    rows,
  }
}

const DAY: AnyPolicyOptions = { name: 'day', limit: 100_000, interval: '1d' }

/** Policies that count the same requests. */
export const LEVELS: readonly { readonly name: string; readonly policies: readonly AnyPolicyOptions[]; readonly pace: Way['pace'] }[] = [
  {
    name: "two windows, 'central'",
    policies: [
      { limit: LIMIT, interval: SECOND, coordination: 'central' },
      { ...DAY, coordination: 'central' },
    ],
    pace: 'windows',
  },
  {
    name: "a window, 'central', and one in the background",
    policies: [{ limit: LIMIT, interval: SECOND, coordination: 'central' }, DAY],
    pace: 'windows',
  },
  {
    name: "leakyBucket() and a window, 'central'",
    policies: [
      { limit: LIMIT, interval: SECOND, algorithm: leakyBucket(), coordination: 'central' },
      { ...DAY, coordination: 'central' },
    ],
    pace: 'even',
  },
  {
    name: "leakyBucket(), 'central', and a window of each process",
    policies: [
      { limit: LIMIT, interval: SECOND, algorithm: leakyBucket(), coordination: 'central' },
      { ...DAY, coordination: 'local' },
    ],
    pace: 'even',
  },
]

/** The cost of waiting if several policies count a request, and whether processes wait equally long. */
export async function levels(): Promise<Report> {
  const rows: Row[] = []
  const goals: Goal[] = []
  for (const { name, policies, pace } of LEVELS) {
    for (const nodes of [1, 3, 12]) {
      for (const roundTrip of [1, 20]) {
        const { unfair, exchanges, most } = await flood(policies, nodes, roundTrip, 0)
        rows.push({
          policies: name,
          nodes,
          'round trip, ms': roundTrip,
          'questions for a request': round(exchanges),
          'longest mean wait of a node, times the shortest': round(unfair),
          'most in any second': most,
        })
        const what = `${name}, ${nodes} nodes, ${roundTrip} ms`
        goals.push({ what: `${what}: questions for a request`, value: exchanges, most: 1.5 })
        goals.push({ what: `${what}: longest mean wait of a node, times the shortest`, value: unfair, most: 1.5 })
        // Any second may be part of two seconds of the clock.
        goals.push({ what: `${what}: most in any second`, value: most, most: pace === 'even' ? LIMIT + 1 : 2 * LIMIT })
      }
    }
  }
  return { title: `${FLOOD} requests at once that several policies count, the same number at each node, in virtual time`, rows, goals }
}
