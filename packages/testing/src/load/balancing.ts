import { WeightedIndex, zipfWeights } from '../random/distribution.ts'
import type { SeededRandom } from '../random/random.ts'

/** The surroundings of a balancing. */
export interface BalancingContext {
  readonly random: SeededRandom
  /** The policy's interval, in milliseconds. */
  readonly interval: number
}

/** Picks the process, from 0 to `nodes` - 1, for a request for `key` that arrives at `time` (milliseconds since the start). */
export type Picker = (nodes: number, time: number, key: string) => number

/** Spreads requests over the processes. */
export interface Balancing {
  /** Names the balancing in messages. */
  readonly name: string
  start(context: BalancingContext): Picker
}

/** Sends each request to a random process. */
export const uniform: Balancing = {
  name: 'uniform',
  start: ({ random }) => {
    return (nodes) => Math.floor(random.next() * nodes)
  },
}

/** Sends requests to one process after the other. */
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

/** Sends all requests of a key to one process. */
export const sticky: Balancing = {
  name: 'sticky',
  start: () => (nodes, _time, key) => hash(key) % nodes,
}

/** Sends much more to some processes than to others: their shares are 1, 1/2^s, 1/3^s, … */
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
 * Sends everything to one process, but moves all traffic to another one every so many intervals, at a random moment.
 *
 * @param every the number of intervals between two moves
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
