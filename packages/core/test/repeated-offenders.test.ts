import { describe, expect, test } from 'vitest'
import { createThrottler } from '../src/index.ts'
import { type Node, type Scene, scene } from './support/nodes.ts'

const policy = { limit: 1, interval: 100, spans: 2, cooldown: { base: 1_000, factor: 3, max: 5_000, memory: 10_000 } } as const

/** Length of the block that an excess starts, as the node sees it once the store has answered. */
async function offend({ world }: Scene, node: Node): Promise<number> {
  node.check('k')
  node.check('k')
  await world.run(20)
  return node.peek('k').retryAfter + 20
}

describe('a cooldown that grows', () => {
  for (const alone of [false, true]) {
    test(`is longer with each new block, up to its longest, and forgets (${alone ? 'without' : 'with'} a store)`, async () => {
      const here = scene()
      const node = here.node(policy, { alone })
      await here.world.run(50)
      const lengths: number[] = []
      for (const _ of [1, 2, 3, 4]) {
        const length = await offend(here, node)
        lengths.push(Math.round(length / 100) * 100)
        await here.world.run(length + 100)
      }
      expect(lengths).toEqual([1_000, 3_000, 5_000, 5_000])
      await here.world.run(10_000)
      expect(Math.round((await offend(here, node)) / 100) * 100).toBe(1_000)
      await here.close()
    })
  }

  test('counts the blocks that other nodes started', async () => {
    const here = scene()
    const one = here.node(policy).start() as Node
    const other = here.node(policy).start() as Node
    await here.world.run(50)
    const first = await offend(here, one)
    await here.world.run(first + 100)
    expect(Math.round((await offend(here, other)) / 100) * 100).toBe(3_000)
    await here.close()
  })
})

describe('bad growing cooldowns are refused', () => {
  for (const [cooldown, names] of [
    [{ base: 0, max: '1m' }, 'cooldown.base'],
    [{ base: '1m', max: '1s' }, 'cooldown.max'],
    [{ base: '1m' }, 'cooldown.max'],
    [{ base: '1m', max: '1h', factor: 1 }, 'cooldown.factor'],
    [{ base: '1m', max: '1h', factor: Number.NaN }, 'cooldown.factor'],
    [{ base: '1m', max: '1h', memory: 0 }, 'cooldown.memory'],
    [{ base: '1m', max: '1h', grow: 2 }, 'cooldown.grow'],
  ] as const) {
    test(JSON.stringify(cooldown), () => {
      expect(() => createThrottler({ policies: [{ limit: 1, interval: '1m', cooldown: cooldown as never }] })).toThrow(names)
    })
  }
})
