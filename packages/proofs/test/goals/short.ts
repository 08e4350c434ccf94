import { type SimulationResult, simulate } from '@weir/testing'
import { describe, expect, it } from 'vitest'
import type { GoalCase } from '../../src/accuracy/goal.ts'
import { format, linesOf } from '../../src/accuracy/report.ts'
import { goalOf } from '../../src/accuracy/task.ts'

/** Some cases of a goal, each simulated for a few intervals. The bounds are the goal's own, or the documented ones if it is missed. */
export interface Pick {
  readonly goal: string
  /** Chooses cases by their names. Default: all. */
  readonly cases?: RegExp
  /** The value of `pnpm accuracy --intervals`. */
  readonly intervals: number
  /** Leaves out scenarios whose load has a matching name, because they take too long. */
  readonly without?: RegExp
  /** The seed. Default 1. */
  readonly seed?: number
}

/** Declares a test for each chosen case. */
export function holdGoals(picks: readonly Pick[]): void {
  for (const id of new Set(picks.map(({ goal }) => goal))) {
    describe(`${id}: ${goalOf(id).title}`, () => {
      for (const pick of picks) if (pick.goal === id) holdGoal(pick)
    })
  }
}

function holdGoal(pick: Pick): void {
  const { goal: id, cases = /(?:)/, intervals, seed = 1 } = pick
  const goal = goalOf(id)
  const picked = goal.cases({ intervals, quick: true }).filter(({ name }) => cases.test(name))
  if (picked.length === 0) throw new Error(`No case of goal ${id} is named ${cases}`)
  it.each(picked.map((one) => [one.name, one] as const))('%s', async (_name, one) => {
    const figures = one.measure === undefined ? one.judge(await simulated(one, pick)) : await one.measure(seed)
    const lines = linesOf(goal, one, figures)
    const failed = lines.filter(({ verdict }) => verdict === 'FAILS').map((line) => format(line).replace(/ +/g, ' '))
    expect(failed, `with seed ${seed}, ${intervals} intervals`).toEqual([])
  })
}

async function simulated({ scenarios }: GoalCase, { without, seed = 1 }: Pick): Promise<readonly SimulationResult[]> {
  const results: SimulationResult[] = []
  for (const scenario of scenarios) {
    if (without?.test(scenario.load.name) !== true) results.push(await simulate({ ...scenario, seed }))
  }
  return results
}
