import { simulate } from '@weir/testing'
import { describe, expect, it } from 'vitest'
import { attacks, type Phase, worstOfAttacks } from '../../src/accuracy/attacks.ts'
import { atLeast, atMost, atMostYet, pooled, verdictOf } from '../../src/accuracy/goal.ts'
import { GOALS } from '../../src/accuracy/goals.ts'
import { format, linesOf } from '../../src/accuracy/report.ts'
import { goalOf, perform, tasksOf } from '../../src/accuracy/task.ts'

const size = { intervals: 2, quick: true }

describe('the goals', () => {
  it('are all there, in order', () => {
    // The former goal 20 is now part of the goals of leases.
    const fixed = Array.from({ length: 22 }, (_, index) => String(index + 1)).filter((id) => id !== '20')
    const sliding = Array.from({ length: 15 }, (_, index) => `S${index + 1}`)
    const ids = GOALS.map(({ id }) => id)
    expect(ids.slice(0, fixed.length + sliding.length)).toEqual([...fixed, ...sliding])
    expect(new Set(ids).size).toBe(ids.length)
    for (let goal = 2; goal <= 6; goal++) expect(ids).toContain(`B${goal}`)
  })

  it('have cases with names of their own', () => {
    for (const goal of GOALS) {
      const names = goal.cases(size).map(({ name }) => name)
      expect(names.length).toBeGreaterThan(0)
      expect(new Set(names).size).toBe(names.length)
    }
  })

  it('judge what was simulated', async () => {
    const goal = goalOf('3')
    const [first] = goal.cases(size)
    const { result, error } = await perform({ goal: '3', case: 0, scenario: 0, seed: 3, size })
    expect(error).toBeUndefined()
    if (first === undefined || result === undefined) throw new Error('nothing was simulated')
    expect(result.seed).toBe(3)
    const lines = linesOf(goal, first, first.judge([result, result]))
    expect(lines.map(({ figure, most }) => [figure, most])).toEqual([
      ['overshoot p95', 2],
      ['operations', 80],
    ])
    expect(pooled([result, result]).intervals).toBe(4)
  })

  it('are split into a task for each scenario and seed', () => {
    const tasks = tasksOf([goalOf('1')], 2, size)
    expect(tasks).toHaveLength(6 * 5 * 2)
    expect(tasks[1]).toEqual({ goal: '1', case: 0, scenario: 0, seed: 2, size })
  })
})

describe('a figure', () => {
  it('holds within its goal, and misses it within the bound that is kept until then', () => {
    expect(
      [atMost('a', 1, 1), atMost('a', 1.1, 1), atLeast('a', 1, 1), atLeast('a', 0.9, 1), atMost('a', Number.NaN, 1)].map(verdictOf),
    ).toEqual(['holds', 'FAILS', 'holds', 'FAILS', 'FAILS'])
    expect([1, 2, 2.1, Number.NaN].map((value) => verdictOf(atMostYet('a', value, 1, 2)))).toEqual(['holds', 'misses', 'FAILS', 'FAILS'])
  })

  it('is a line of the report', () => {
    const [line] = linesOf({ id: '1', title: 'title' }, { name: 'case', scenarios: [], judge: () => [] }, [atMost('figure', 0.123456, 0.1)])
    if (line === undefined) throw new Error('no line')
    expect(format(line).replace(/ +/g, ' ')).toBe(' case figure 0.1235 % <= 0.1 % FAILS')
    const { most: _, ...stated } = line
    expect(format({ ...stated, verdict: 'holds' }).replace(/ +/g, ' ')).toBe(' case figure 0.1235 % no goal stated')
  })
})

describe('attacks on an idle key', () => {
  it.each<[Phase, readonly number[]]>([
    ['boundary', [2, 6, 10]],
    ['random phase', [2, 6, 10]],
    ['bucket edge', [2, 6, 10]],
    ['straddling', [1, 2, 5, 6, 9, 10]],
  ])('are measured where they are: %s', async (phase, measured) => {
    const result = await simulate({ policy: { limit: 100, interval: 1000 }, nodes: 2, ...attacks(3, phase, 20) })
    expect(result.measured.map(({ index }) => index)).toEqual(measured)
    const last = result.measured.filter(({ index }) => index % 4 === 2)
    for (const { requests } of last) expect(requests).toBeGreaterThan(50)
    expect(worstOfAttacks([result], ({ allowed }) => allowed)).toHaveLength(3)
    // All requests except a few at a boundary are in a measured interval, because the other intervals are idle.
    expect(result.requests).toBe(result.allRequests)
  })
})
