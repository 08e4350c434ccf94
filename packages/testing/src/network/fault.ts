import type { SeededRandom } from '../random/random.ts'

/** The ways in which a store fails: it refuses connections, accepts requests and answers them when it is back, or loses all requests. */
export type OutageMode = 'reject' | 'hang' | 'lose'

/** Events in the cluster besides requests. Moments are positions in intervals since the start of the first one. */
export type Fault =
  | { readonly kind: 'outage'; readonly from: number; readonly until: number; readonly mode?: OutageMode }
  /** The store answers `extra` milliseconds later. */
  | { readonly kind: 'slow-store'; readonly from: number; readonly until: number; readonly extra: number }
  /** The store loses all its data. */
  | { readonly kind: 'data-loss'; readonly at: number }
  /** The store's clock steps by `step` milliseconds. */
  | { readonly kind: 'store-clock'; readonly at: number; readonly step: number }
  /** A process's wall clock steps by `step` milliseconds. */
  | { readonly kind: 'node-clock'; readonly at: number; readonly node: number; readonly step: number }
  /** A process neither reaches the store nor gets anything from it. */
  | { readonly kind: 'partition'; readonly from: number; readonly until: number; readonly node: number }
  /** No announcement reaches any process. */
  | { readonly kind: 'silence'; readonly from: number; readonly until: number }
  /** A process's event loop is blocked. Requests, timers and messages wait. */
  | { readonly kind: 'stall'; readonly from: number; readonly until: number; readonly node: number }
  /** A process ends without closing. A new one takes its place. */
  | { readonly kind: 'crash'; readonly at: number; readonly node: number }
  /** A process is closed in order. A new one takes its place. */
  | { readonly kind: 'restart'; readonly at: number; readonly node: number }
  /** The number of processes changes to `nodes`: new ones start, or the last ones are closed in order. */
  | { readonly kind: 'scale'; readonly at: number; readonly nodes: number }

/** Makes the faults of a whole run once its length and number of processes are known. */
export interface FaultPlan {
  /** Names the plan in messages. */
  readonly name: string
  plan(context: { readonly random: SeededRandom; readonly intervals: number; readonly nodes: number }): readonly Fault[]
}

/** Uses exactly these faults. */
export function faults(...list: readonly Fault[]): FaultPlan {
  return { name: JSON.stringify(list), plan: () => list }
}

/** One crash in each interval, of a random process at a random moment. */
export const crashes: FaultPlan = {
  name: 'a crash per interval',
  plan: ({ random, intervals, nodes }) =>
    Array.from({ length: intervals }, (_, at) => ({ kind: 'crash', at: at + random.next(), node: random.below(nodes) })),
}

/** One orderly restart in each interval, of one process after the other, at a random moment. */
export const restarts: FaultPlan = {
  name: 'a restart per interval',
  plan: ({ random, intervals, nodes }) =>
    Array.from({ length: intervals }, (_, at) => ({ kind: 'restart', at: at + random.next(), node: at % nodes })),
}

/**
 * Doubles the number of processes at a random moment of an interval and halves it in a later one, repeatedly.
 *
 * @param every the number of intervals from one doubling to the next, at least 2
 */
export function doubling(every = 4): FaultPlan {
  return {
    name: `nodes doubled every ${every} intervals`,
    plan: ({ random, intervals, nodes }) => {
      const list: Fault[] = []
      for (let cycle = 1; cycle * every < intervals; cycle++) {
        const at = cycle * every
        list.push({ kind: 'scale', at: at + random.next(), nodes: nodes * 2 })
        list.push({ kind: 'scale', at: at + every / 2 + random.next(), nodes })
      }
      return list
    },
  }
}

/** Makes the store unavailable for `length` intervals, repeatedly, with `pause` intervals in between. */
export function outages(outage: {
  /** Sets how long the store is down, in intervals. */
  readonly length: number
  /** Sets the time between two outages, in intervals. */
  readonly pause: number
  /**
   * Chooses how the store fails.
   * - `'reject'`: it refuses connections.
   * - `'hang'`: it accepts requests and answers them when it is back.
   * - `'lose'`: it loses all requests.
   *
   * @default 'reject'
   */
  readonly mode?: OutageMode
  /**
   * Starts the first outage at this position.
   *
   * @default the value of `pause`
   */
  readonly first?: number
}): FaultPlan {
  const { length, pause, mode = 'reject', first = pause } = outage
  return {
    name: `store away for ${length} intervals (${mode}), with pauses of ${pause}`,
    plan: ({ intervals }) => {
      const list: Fault[] = []
      for (let from = first; from < intervals; from += length + pause) list.push({ kind: 'outage', from, until: from + length, mode })
      return list
    },
  }
}
