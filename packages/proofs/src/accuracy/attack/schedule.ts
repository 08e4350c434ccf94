import { type PolicyOptions, slidingWindow } from '@weir/core'
import { type Balancing, type Scenario, type SeededRandom, type TraceRequest, trace } from '@weir/testing'
import { type BoundOf, reactionTime } from './bound.ts'

/** The interval, in milliseconds. */
export const INTERVAL = 10_000
/** Intervals in which an attack may happen. */
const LENGTH = 2

/** Requests, evenly spread over some time and some processes. */
export interface Volley {
  /** Its start and its length, in intervals. */
  readonly at: number
  readonly width: number
  readonly requests: number
  readonly cost: number
  /** The processes that get it, in turn: `nodes` of them from `first` on. */
  readonly first: number
  readonly nodes: number
}

/** The system under attack. */
export interface Target {
  readonly window: 'fixed' | 'sliding'
  readonly limit: number
  readonly nodes: number
  /** The round trip to the store, in milliseconds. */
  readonly roundTrip: number
}

/** An attack: its requests, with their times and processes. Everything else follows from the seed. */
export interface Schedule {
  readonly seed: number
  readonly volleys: readonly Volley[]
}

interface Arrival extends TraceRequest {
  readonly cost: number
  readonly node: number
}

/** The speed of an attack. A slow attack can profit only from the units that processes have not sent yet. */
export type Pace = 'volleys' | 'slow'

/** The most units of an attack, in limits. More would prove nothing, and take long. */
const MOST_UNITS = 6
/** The shortest volley of a slow attack, as a part of the interval. */
const SLOWEST = 0.02

export function randomSchedule(random: SeededRandom, target: Target, pace: Pace, seed: number): Schedule {
  if (pace === 'slow' && random.next() < 0.5) return { seed, volleys: quietly(random, target) }
  const volleys = Array.from({ length: 1 + random.below(6) }, () => randomVolley(random, target, pace))
  return { seed, volleys }
}

/**
 * All processes but one use as much as they may leave unsent, the last one uses the remaining quota, and then all of them get more
 * requests.
 */
function quietly(random: SeededRandom, { limit, nodes }: Target): Volley[] {
  const held = Math.max(1, Math.floor((random.next() * limit) / nodes))
  const begin = random.next() * 1.5
  const widths = [SLOWEST, SLOWEST, 2 * SLOWEST].map((width) => width * (1 + random.next()))
  const volley = (place: 0 | 1 | 2, requests: number, first: number, wanted: number): Volley => {
    const at = begin + widths.slice(0, place).reduce((sum, width) => sum + width, 0)
    return { at, width: widths[place] as number, requests, cost: 1, first, nodes: wanted }
  }
  return [volley(0, held * (nodes - 1), 1, nodes - 1), volley(1, Math.ceil(1.2 * limit), 0, 1), volley(2, 3 * nodes, 0, nodes)]
}

function randomVolley(random: SeededRandom, target: Target, pace: Pace): Volley {
  const width = pace === 'slow' ? SLOWEST + random.next() * 0.6 : random.next() < 0.5 ? random.next() * 0.002 : random.next() * 0.3
  const cost = random.next() < 0.8 ? 1 : 1 + random.below(Math.max(1, Math.floor(target.limit / 4)))
  return {
    at: random.next() * (LENGTH - width),
    width,
    cost,
    requests: 1 + random.below(Math.max(1, Math.ceil((random.next() * 2 * target.limit) / cost))),
    first: random.below(target.nodes),
    nodes: random.next() < 0.3 ? 1 : random.next() < 0.5 ? target.nodes : 1 + random.below(target.nodes),
  }
}

/** A neighbour of a schedule: one volley more, one less, another one, or one volley that is changed a little. */
export function changed(schedule: Schedule, random: SeededRandom, target: Target, pace: Pace): Schedule {
  const volleys = [...schedule.volleys]
  const place = random.below(volleys.length)
  const what = random.below(8)
  const one = volleys[place] as Volley
  if (what === 0 && volleys.length < 12) volleys.push(randomVolley(random, target, pace))
  else if (what === 1 && volleys.length > 1) volleys.splice(place, 1)
  else if (what === 2) volleys[place] = randomVolley(random, target, pace)
  else {
    const least = pace === 'slow' ? SLOWEST : 0
    const width = Math.max(least, what === 3 ? one.width * (0.5 + random.next()) : one.width)
    const at = what === 4 ? one.at + (random.next() - 0.5) * 0.2 : one.at
    volleys[place] = {
      ...one,
      width,
      at: Math.min(LENGTH - width, Math.max(0, at)),
      requests: what === 5 ? Math.max(1, Math.round(one.requests * (0.6 + random.next()))) : one.requests,
      nodes: what === 6 ? 1 + random.below(target.nodes) : one.nodes,
      first: what === 7 ? random.below(target.nodes) : one.first,
    }
  }
  return { ...schedule, volleys }
}

/** All requests in order of time, up to the useful number of units. */
function arrivalsOf({ volleys }: Schedule, { limit, nodes: all }: Target): Arrival[] {
  const arrivals = volleys.flatMap(({ at, width, requests, cost, first, nodes }) =>
    Array.from({ length: requests }, (_, i) => ({
      time: (at + (width * i) / requests) * INTERVAL,
      cost: Math.min(cost, limit),
      node: (first + (i % nodes)) % all,
    })),
  )
  arrivals.sort((a, b) => a.time - b.time)
  let left = MOST_UNITS * Math.max(limit, all)
  return arrivals.filter(({ cost }) => {
    left -= cost
    return left >= 0
  })
}

/** The simulation of an attack, and the parameters of its bound. */
export function scenarioOf(schedule: Schedule, target: Target): { readonly scenario: Scenario; readonly bound: BoundOf } {
  const { window, limit, nodes, roundTrip } = target
  const arrivals = arrivalsOf(schedule, target)
  const policy: PolicyOptions = { limit, interval: INTERVAL, ...(window === 'sliding' && { algorithm: slidingWindow() }) }
  const scenario: Scenario = {
    policy,
    nodes,
    seed: schedule.seed,
    warmup: 0,
    intervals: LENGTH + 1,
    load: trace(arrivals),
    balancing: inTurn(arrivals.map(({ node }) => node)),
    network: { latency: roundTrip / 2 },
  }
  const largest = Math.max(...arrivals.map(({ cost }) => cost))
  return { scenario, bound: { window, limit, nodes, largest, peak: peakOf(arrivals, reactionTime(roundTrip)) } }
}

/** Sends each request to the process that was chosen for it. */
function inTurn(places: readonly number[]): Balancing {
  return {
    name: 'chosen for each request',
    start: () => {
      let next = 0
      return () => places[next++] as number
    },
  }
}

/** The most units in any stretch of `length` milliseconds. */
function peakOf(arrivals: readonly Arrival[], length: number): number {
  let peak = 0
  let sum = 0
  let first = 0
  for (const { time, cost } of arrivals) {
    sum += cost
    while ((arrivals[first] as Arrival).time < time - length) sum -= (arrivals[first++] as Arrival).cost
    peak = Math.max(peak, sum)
  }
  return peak
}
