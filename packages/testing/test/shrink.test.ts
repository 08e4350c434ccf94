import { describe, expect, it } from 'vitest'
import { expectSimulation, poisson, type Scenario, shorten } from '../src/index.ts'
import { alone, central, exactClocks } from './limiters.ts'

const scenario: Scenario = {
  policy: { limit: 10, interval: 100 },
  nodes: 9,
  intervals: 30,
  load: poisson(100),
  clocks: exactClocks,
  seed: 7,
  node: alone,
}

describe('a failed expectation', () => {
  it('names the seed, and the shortest scenario that fails too', async () => {
    const expectation = expectSimulation(scenario, ({ overshoot }) => {
      if (overshoot.max > 1.5) throw new Error('too much')
    })
    // These processes don't share anything, so three of them allow three times the limit.
    await expect(expectation).rejects.toThrow(
      'too much\n' +
        '  in: seed 7, policy {"limit":10,"interval":100}, nodes 9, intervals 2+30, load poisson x100, balancing uniform\n' +
        '  shortest that fails: seed 7, policy {"limit":10,"interval":100}, nodes 3, intervals 2+1, load poisson x100, balancing uniform',
    )
  })

  it('is what the error was caused by', async () => {
    const cause = new Error('no')
    const expectation = expectSimulation({ ...scenario, intervals: 1, nodes: 1 }, () => {
      throw cause
    })
    await expect(expectation).rejects.toMatchObject({ cause })
  })

  it('is searched for by halving', async () => {
    let runs = 0
    const shortest = await shorten({ ...scenario, node: central(), nodes: 1, intervals: 1000 }, ({ intervals }) => {
      runs++
      if (intervals >= 77) throw new Error('late')
    })
    expect(shortest.intervals).toBe(77)
    expect(runs).toBeLessThan(15)
  })

  it('may be an error of a node', async () => {
    const broken = () => ({
      nodeId: 'broken',
      check: () => {
        throw new Error('broken node')
      },
      close: async () => {},
    })
    await expect(expectSimulation({ ...scenario, node: broken }, () => {})).rejects.toThrow(/broken node\n {2}in: seed 7/)
  })

  it('is none when all is well', async () => {
    const result = await expectSimulation(scenario, ({ overshoot }) => expect(overshoot.max).toBeGreaterThan(7))
    expect(result.intervals).toBe(30)
  })
})
