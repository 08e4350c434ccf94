import type { SeededRandom } from '../random/random.ts'

/** How a store is away: it refuses connections, takes requests and answers when it is back, or loses whatever is sent to it. */
export type OutageMode = 'reject' | 'hang' | 'lose'

/** Events in the cluster besides requests. Moments are positions in intervals since the beginning of the first one. */
export type Fault =
  | { readonly kind: 'outage'; readonly from: number; readonly until: number; readonly mode?: OutageMode }
  /** The store answers, but so many milliseconds later. */
  | { readonly kind: 'slow-store'; readonly from: number; readonly until: number; readonly extra: number }
  /** The store loses all its data. */
  | { readonly kind: 'data-loss'; readonly at: number }
  /** The store's clock steps by so many milliseconds. */
  | { readonly kind: 'store-clock'; readonly at: number; readonly step: number }
  /** A node's wall clock steps by so many milliseconds. */
  | { readonly kind: 'node-clock'; readonly at: number; readonly node: number; readonly step: number }
  /** A node neither reaches the store nor hears it. */
  | { readonly kind: 'partition'; readonly from: number; readonly until: number; readonly node: number }
  /** No announcement reaches anybody. */
  | { readonly kind: 'silence'; readonly from: number; readonly until: number }
  /** A node's event loop stands still; requests, timers and messages wait. */
  | { readonly kind: 'stall'; readonly from: number; readonly until: number; readonly node: number }
  /** A node dies without a word; a fresh one takes its place. */
  | { readonly kind: 'crash'; readonly at: number; readonly node: number }
  /** A node is closed in order; a fresh one takes its place. */
  | { readonly kind: 'restart'; readonly at: number; readonly node: number }
  /** From now on there are so many nodes: fresh ones start, or the last ones are closed in order. */
  | { readonly kind: 'scale'; readonly at: number; readonly nodes: number }

/** Faults of a whole run, made when its length and number of nodes are known. */
export interface FaultPlan {
  /** For messages. */
  readonly name: string
  plan(context: { readonly random: SeededRandom; readonly intervals: number; readonly nodes: number }): readonly Fault[]
}

/** Given faults. */
export function faults(...list: readonly Fault[]): FaultPlan {
  return { name: JSON.stringify(list), plan: () => list }
}

/** One crash in each interval: any node, at any moment. */
export const crashes: FaultPlan = {
  name: 'a crash per interval',
  plan: ({ random, intervals, nodes }) =>
    Array.from({ length: intervals }, (_, at) => ({ kind: 'crash', at: at + random.next(), node: random.below(nodes) })),
}

/** One orderly restart in each interval, one node after the other, at any moment. */
export const restarts: FaultPlan = {
  name: 'a restart per interval',
  plan: ({ random, intervals, nodes }) =>
    Array.from({ length: intervals }, (_, at) => ({ kind: 'restart', at: at + random.next(), node: at % nodes })),
}

/**
 * The number of nodes is doubled at a random moment of an interval and halved in a later one, over and over.
 *
 * @param every intervals from one doubling to the next, at least 2
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

/** The store is away for `length` intervals, over and over, with `pause` intervals in between. */
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
