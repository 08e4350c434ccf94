import { SeededRandom, simulate } from '@weir/testing'
import { mostAllowed } from './bound.ts'
import { changed, type Pace, randomSchedule, type Schedule, scenarioOf, type Target } from './schedule.ts'

/** The result of an attack. */
export interface Attempt {
  readonly target: Target
  readonly pace: Pace
  readonly schedule: Schedule
  /** Units that were allowed in the worst interval or stretch. */
  readonly allowed: number
  /** The most units by the documentation's bound. */
  readonly most: number
}

/** Units beyond the limit, as a part of the overshoot that the bound allows. More than 1 beats the bound. */
export function reached({ target, allowed, most }: Attempt): number {
  return most > target.limit ? (allowed - target.limit) / (most - target.limit) : allowed > most ? Number.POSITIVE_INFINITY : 0
}

export function beats({ allowed, most }: Attempt): boolean {
  // Sums of fractions differ by less than this.
  return allowed > most * (1 + 1e-9)
}

export async function attempt(target: Target, pace: Pace, schedule: Schedule): Promise<Attempt> {
  const { scenario, bound } = scenarioOf(schedule, target)
  const { measured } = await simulate(scenario)
  const allowed = Math.max(...measured.map((one) => (target.window === 'fixed' ? one.allowed : one.worstWindow)))
  return { target, pace, schedule, allowed, most: mostAllowed(bound) }
}

/** All targets of attacks, in turn. */
export const TARGETS: readonly Target[] = ([20, 100, 1_000] as const).flatMap((limit) =>
  ([3, 12, 50] as const).flatMap((nodes) =>
    ([1, 10] as const).flatMap((roundTrip) => (['fixed', 'sliding'] as const).map((window) => ({ window, limit, nodes, roundTrip }))),
  ),
)

/** Neighbours that are tried one after the other, before the search starts again. */
const CLIMB = 25
/** A number that has no common divisor with the number of targets. */
const SCATTER = 17

/**
 * Searches for attacks that allow more than the bound. It starts from random schedules and continues with neighbours that get
 * further. One climb depends only on its number and the seed.
 *
 * @param climbs the numbers of the climbs
 * @param going called before each attempt, ends the search with false
 * @param seen receives each attempt
 */
export async function search(
  seed: number,
  climbs: Iterable<number>,
  going: () => boolean,
  seen: (attempt: Attempt) => void,
): Promise<void> {
  for (const climb of climbs) {
    const random = new SeededRandom(`${seed}/${climb}`)
    // Targets are scattered, so that a short search tries all kinds of them.
    const target = TARGETS[(climb * SCATTER) % TARGETS.length] as Target
    const pace: Pace = Math.floor(climb / TARGETS.length) % 2 === 0 ? 'slow' : 'volleys'
    let best: Attempt | undefined
    for (let step = 0; step < CLIMB; step++) {
      if (!going()) return
      const schedule = best === undefined ? randomSchedule(random, target, pace, 1 + climb) : changed(best.schedule, random, target, pace)
      const tried = await attempt(target, pace, schedule)
      seen(tried)
      if (best === undefined || reached(tried) >= reached(best)) best = tried
    }
  }
}
