import type { AnyPolicyOptions } from '@weir/core'
import { SeededRandom } from '@weir/testing'
import { startNodes } from './nodes.ts'

/** A waiting request: its process, and its arrival in milliseconds. */
export interface Arrival {
  readonly node: number
  readonly at: number
}

export interface WaitingScenario {
  readonly policy: AnyPolicyOptions | readonly AnyPolicyOptions[]
  readonly nodes: number
  /** The round trip to the store, in milliseconds. */
  readonly roundTrip: number
  readonly arrivals: readonly Arrival[]
  readonly seed: number
  /** The longest wait of each request, in milliseconds. Default: no bound. */
  readonly timeout?: number
}

export interface WaitingResult {
  /** The times at which requests started, in the order of their arrivals. Infinite for requests that did not start. */
  readonly went: readonly number[]
  /** Syncs with the store, and decisions of the store, while requests waited. */
  readonly exchanges: number
  /** Key writes of a key, and announcements of the store meanwhile. */
  readonly operations: number
}

/** The longest possible wait, in milliseconds. */
const PATIENCE = 600_000
const KEY = 'key'

/** Requests that wait in several processes for one key, in virtual time. */
export async function waitTogether({ policy, nodes, roundTrip, arrivals, seed, timeout }: WaitingScenario): Promise<WaitingResult> {
  const queue = { maxWaiting: arrivals.length, maxWaitingPerKey: arrivals.length, maxWait: PATIENCE }
  const { time, store, throttlers, stop } = await startNodes({ policy, nodes, roundTrip, seed, queue })
  await time.runUntil(-1)
  const before = { ...store.statistics }
  const went = arrivals.map(() => Number.POSITIVE_INFINITY)
  let left = arrivals.length
  for (const [place, { node, at }] of arrivals.entries()) {
    time.at(at, () => {
      const done = (): void => {
        left--
      }
      const goes = (): void => {
        went[place] = time.now
        left--
      }
      throttlers[node]?.acquire(KEY, { timeout: timeout ?? PATIENCE }).then(goes, done)
    })
  }
  const end = (arrivals.at(-1)?.at ?? 0) + PATIENCE
  while (left > 0 && time.nextAt <= end) await time.runUntil(time.nextAt)
  stop()
  const { exchanges, decisions, entries, announcements } = store.statistics
  const decided = decisions - before.decisions
  const operations = decided + entries + announcements - before.entries - before.announcements
  return { went, exchanges: exchanges - before.exchanges + decided, operations }
}

/**
 * The times at which requests start that wait in one central queue for `limit` per `interval` milliseconds, evenly or by windows of
 * the clock.
 */
export function ideal(arrivals: readonly Arrival[], limit: number, interval: number, pace: 'even' | 'windows'): readonly number[] {
  let slot = Number.NEGATIVE_INFINITY
  let count = 0
  return arrivals.map(({ at }) => {
    if (pace === 'even') return (slot = Math.max(at, slot + interval / limit))
    const window = Math.floor(at / interval)
    if (window > slot) [slot, count] = [window, 0]
    if (count === limit) [slot, count] = [slot + 1, 0]
    count++
    return Math.max(at, slot * interval)
  })
}

/** Random requests of many clients, `rate` a second for `seconds` seconds. Each process gets its part of them. */
export function poissonArrivals(rate: number, seconds: number, parts: readonly number[], seed: number): readonly Arrival[] {
  const random = new SeededRandom(seed).stream('arrivals')
  const all = parts.reduce((sum, part) => sum + part, 0)
  const arrivals: Arrival[] = []
  for (let at = (random.exponential() * 1_000) / rate; at < seconds * 1_000; at += (random.exponential() * 1_000) / rate) {
    let draw = random.next() * all
    let node = 0
    while (node < parts.length - 1 && draw >= (parts[node] as number)) draw -= parts[node++] as number
    arrivals.push({ node, at })
  }
  return arrivals
}

/** The mean wait, in milliseconds. */
export function meanWait(arrivals: readonly Arrival[], went: readonly number[]): number {
  return arrivals.reduce((sum, { at }, place) => sum + (went[place] as number) - at, 0) / arrivals.length
}

/** The most requests that started within any `span` milliseconds. */
export function mostIn(went: readonly number[], span: number): number {
  const times = went.toSorted((a, b) => a - b)
  let most = 0
  let from = 0
  for (const [until, time] of times.entries()) {
    while ((times[from] as number) <= time - span) from++
    most = Math.max(most, until - from + 1)
  }
  return most
}
