import { WeightedIndex, zipfWeights } from '../random/distribution.ts'
import type { SeededRandom } from '../random/random.ts'

/** The surroundings of a balancing. */
export interface BalancingContext {
  readonly random: SeededRandom
  /** Milliseconds. */
  readonly interval: number
}

/** Picks the node, below `nodes`, for a request that arrives at `time` (milliseconds since the begin) for `key`. */
export type Picker = (nodes: number, time: number, key: string) => number

/** How requests are spread over the nodes. */
export interface Balancing {
  /** For messages. */
  readonly name: string
  start(context: BalancingContext): Picker
}

/** Each request goes to any node. */
export const uniform: Balancing = {
  name: 'uniform',
  start: ({ random }) => {
    return (nodes) => Math.floor(random.next() * nodes)
  },
}

/** One node after the other. */
export const roundRobin: Balancing = {
  name: 'round robin',
  start: () => {
    let turn = 0
    return (nodes) => {
      turn = turn + 1 < nodes ? turn + 1 : 0
      return turn
    }
  },
}

/** All requests of a key go to one node. */
export const sticky: Balancing = {
  name: 'sticky',
  start: () => (nodes, _time, key) => hash(key) % nodes,
}

/** Some nodes get much more than others: shares 1, 1/2^s, 1/3^s, … */
export function zipf(exponent = 1): Balancing {
  return {
    name: `zipf ${exponent}`,
    start: ({ random }) => {
      let index = new WeightedIndex([1])
      let size = 1
      return (nodes) => {
        if (nodes !== size) {
          size = nodes
          index = new WeightedIndex(zipfWeights(nodes, exponent))
        }
        return index.pick(random)
      }
    },
  }
}

/**
 * Sticky, but all traffic moves to another node once in so many intervals, at a random moment.
 *
 * @param every intervals between two moves
 */
export function moving(every = 1): Balancing {
  return {
    name: `sticky, moving every ${every} intervals`,
    start: ({ random, interval }) => {
      const period = every * interval
      let cycle = 0
      let node = 0
      let next = random.next() * period
      return (nodes, time) => {
        while (time >= next) {
          cycle++
          next = (cycle + random.next()) * period
          node += 1 + Math.floor(random.next() * Math.max(1, nodes - 1))
        }
        return node % nodes
      }
    },
  }
}

function hash(key: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < key.length; index++) value = Math.imul(value ^ key.charCodeAt(index), 0x01000193)
  return value >>> 0
}
