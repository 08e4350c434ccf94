import { SeededRandom } from '@weir/testing'
import { describe, expect, it } from 'vitest'
import { mostAllowed } from '../../src/accuracy/attack/bound.ts'
import { changed, randomSchedule, scenarioOf } from '../../src/accuracy/attack/schedule.ts'
import { type Attempt, attempt, beats, reached, search, TARGETS } from '../../src/accuracy/attack/search.ts'

/** The first attacks of some climbs, which a seed repeats. */
async function attacks(seed: number, climbs: readonly number[], steps: number): Promise<readonly Attempt[]> {
  const seen: Attempt[] = []
  for (const climb of climbs) {
    let left = steps
    await search(
      seed,
      [climb],
      () => left-- > 0,
      (one) => seen.push(one),
    )
  }
  return seen
}

describe('attacks on what the documentation says is allowed at most', () => {
  it('do not beat it', async () => {
    const seen = await attacks(
      7,
      Array.from({ length: 2 * TARGETS.length }, (_, climb) => climb),
      2,
    )
    expect(seen).toHaveLength(4 * TARGETS.length)
    expect(seen.filter(beats)).toEqual([])
  })

  it('beat a bound that leaves out what nodes hold back, or what comes within the reaction time', async () => {
    const target = { window: 'fixed', limit: 1_000, nodes: 12, roundTrip: 1 } as const
    const quiet = { width: 0.05, cost: 1 }
    const held = {
      seed: 1,
      volleys: [
        { ...quiet, at: 1, requests: 11 * 25, first: 1, nodes: 11 },
        { ...quiet, at: 1.06, requests: 1_200, first: 0, nodes: 1 },
      ],
    }
    const { bound } = scenarioOf(held, target)
    expect((await attempt(target, 'slow', held)).allowed).toBeGreaterThan(target.limit + bound.peak)
    const late = { seed: 1, volleys: [{ at: 1, width: 0.0005, requests: 3_000, cost: 1, first: 0, nodes: 12 }] }
    expect((await attempt(target, 'volleys', late)).allowed).toBeGreaterThan(mostAllowed({ ...bound, peak: 0 }))
  })

  it('are repeated by their seed, and climb', async () => {
    const [one, two] = [await attacks(3, [5], 12), await attacks(3, [5], 12)]
    expect(two).toEqual(one)
    const best = one.map((_, i) => Math.max(...one.slice(0, i + 1).map(reached)))
    expect(best.at(-1)).toBeGreaterThanOrEqual(best[0] as number)
    expect(new Set(one.map(({ schedule }) => JSON.stringify(schedule))).size).toBe(12)
  })

  it('ask for no more than is of use, in order of time', () => {
    const random = new SeededRandom('schedules')
    for (const target of TARGETS) {
      let schedule = randomSchedule(random, target, 'volleys', 1)
      for (let i = 0; i < 20; i++) schedule = changed(schedule, random, target, 'volleys')
      const { bound } = scenarioOf(schedule, target)
      expect(bound.peak).toBeLessThanOrEqual(6 * Math.max(target.limit, target.nodes))
      expect(bound.largest).toBeLessThanOrEqual(target.limit)
    }
  })

  it('count as beating only beyond the bound', async () => {
    const [target] = TARGETS
    if (target === undefined) throw new Error('no target')
    const volley = { at: 0.5, width: 0, requests: 1_000, cost: 1, first: 0, nodes: target.nodes }
    const one = await attempt(target, 'volleys', { seed: 1, volleys: [volley] })
    expect(one.allowed).toBe(target.limit * target.nodes)
    expect([beats(one), beats({ ...one, allowed: one.allowed + 1 })]).toEqual([false, true])
    expect(reached(one)).toBeCloseTo(1)
  })
})
