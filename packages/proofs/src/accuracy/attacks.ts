import { type IntervalMeasure, type Load, poisson, type Scenario, type SimulationResult, type Stretch } from '@weir/testing'

/**
 * The moment at which an attack on an idle key starts: anywhere in an interval, at its boundary, shortly before it, or shortly
 * before the end of one of 30 spans.
 */
export type Phase = 'random phase' | 'boundary' | 'straddling' | 'bucket edge'

/** Intervals from one attack to the next. Three of them are idle, so that processes forget everything about the key. */
const PERIOD = 4
/** The interval of them that contains the attack, or its start if the attack straddles the next boundary. */
const PLACE = 2
/** A straddling attack sends at most this many times the limit before the boundary. Its rate determines how early it starts. */
const EARLY = 2

/** Evenly scattered numbers in [0, 1): the fractional parts of multiples of the golden section. */
function scattered(index: number): number {
  return (index * 0.6180339887498949) % 1
}

/** The start of a cycle's attack, in intervals. */
function beginOf(cycle: number, phase: Phase, times: number): number {
  const boundary = cycle * PERIOD + PLACE
  if (phase === 'boundary') return boundary
  if (phase === 'random phase') return boundary + scattered(cycle)
  const early = (EARLY * scattered(cycle)) / times
  return phase === 'straddling' ? boundary - early : boundary + (1 + (cycle % 10)) / 30 - early
}

/** Attacks on an idle key, each of which lasts until the end of its interval. */
export function coldAttack(phase: Phase, times: number): Load {
  const course = (position: number): Stretch => {
    const cycle = Math.floor(position / PERIOD)
    const begin = beginOf(cycle, phase, times)
    const end = cycle * PERIOD + PLACE + 1
    if (position < begin) return { times: 0, until: begin }
    return position < end ? { times, until: end } : { times: 0, until: (cycle + 1) * PERIOD }
  }
  return { ...poisson(course), name: `cold x${times}, ${phase}` }
}

/** The scenario fields for a number of attacks. */
export function attacks(count: number, phase: Phase, times: number): Pick<Scenario, 'load' | 'warmup' | 'intervals' | 'measured'> {
  const measured = (index: number): boolean => index % PERIOD === PLACE || (phase === 'straddling' && index % PERIOD === PLACE - 1)
  return { load: coldAttack(phase, times), warmup: 0, intervals: count * PERIOD, measured }
}

/** The worst value of each attack. An attack that straddles a boundary must not count as a harmless interval, too. */
export function worstOfAttacks(results: readonly SimulationResult[], pick: (interval: IntervalMeasure) => number): number[] {
  return results.flatMap((result) => {
    const worst = new Map<number, number>()
    for (const interval of result.measured) {
      const cycle = Math.floor(interval.index / PERIOD)
      worst.set(cycle, Math.max(worst.get(cycle) ?? 0, pick(interval)))
    }
    return [...worst.values()]
  })
}
