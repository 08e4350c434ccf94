import { describe, expect, test } from 'vitest'
import { createThrottler, escalating } from '../../src/index.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'

const options = { base: 1_000, factor: 3, max: 5_000, memory: 10_000 }
const policy = { limit: 1, interval: 100, spans: 2, cooldown: escalating(options) }

/** The length of the block that starts when the limit is exceeded, as the process has it once the store has answered. */
async function offend({ world }: Scene, node: Node): Promise<number> {
  node.check('k')
  node.check('k')
  await world.run(20)
  return node.peek('k').retryAfterMs + 20
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

  test('tells the real wait at once where earlier blocks began at other nodes', async () => {
    const here = scene()
    here.store.roundTrip = 10
    const nodes = [1, 2, 3].map(() => here.node(policy).start() as Node)
    await here.world.run(1_500)
    for (const [at, length] of [1_000, 3_000, 5_000].entries()) {
      const node = nodes[at] as Node
      node.check('k')
      const told = node.check('k').retryAfterMs
      expect(told).toBe(length)
      await here.world.run(told - 20)
      for (const one of nodes) expect(one.peek('k').allowed).toBe(false)
      // The other processes received the block a round trip later.
      await here.world.run(30)
      for (const one of nodes) expect(one.peek('k').allowed).toBe(true)
      await here.world.run(100)
    }
    await here.close()
  })

  test('grows on from the block that a node met first', async () => {
    const here = scene()
    const old = here.node(policy).start() as Node
    await here.world.run(50)
    await here.world.run((await offend(here, old)) + 100)
    await offend(here, old)
    const late = here.node(policy).start() as Node
    await here.world.run(3_500)
    late.check('k')
    expect(late.check('k').retryAfterMs).toBe(5_000)
    await here.close()
  })

  test('takes the real length over where it knew of too little', async () => {
    const here = scene()
    const grows = { ...policy, cooldown: escalating({ ...options, max: 60_000, memory: 60_000 }) }
    const old = here.node(grows).start() as Node
    await here.world.run(50)
    await here.world.run((await offend(here, old)) + 1_500)
    const late = here.node(grows).start() as Node
    await here.world.run(50)
    late.check('k')
    expect(late.check('k').retryAfterMs).toBe(1_000)
    await here.world.run(50)
    expect(Math.round(late.peek('k').retryAfterMs / 100) * 100).toBe(3_000)
    await here.world.run(3_500)
    late.check('k')
    expect(late.check('k').retryAfterMs).toBe(9_000)
    await here.close()
  })
})

describe('bad escalating cooldowns are rejected', () => {
  for (const [cooldown, names] of [
    [{ base: 0, max: '1m' }, 'escalating.base'],
    [{ base: '1m', max: '1s' }, 'escalating.max'],
    [{ base: '1m' }, 'escalating.max'],
    [{ base: '1m', max: '1h', factor: 1 }, 'escalating.factor'],
    [{ base: '1m', max: '1h', factor: Number.NaN }, 'escalating.factor'],
    [{ base: '1m', max: '1h', memory: 0 }, 'escalating.memory'],
    [{ base: '1m', max: '1h', grow: 2 }, 'escalating.grow'],
  ] as const) {
    test(JSON.stringify(cooldown), () => {
      expect(() => escalating(cooldown as never)).toThrow(names)
    })
  }

  test('options that escalating() has not made', () => {
    const cooldown = { base: '1m', max: '1h' } as never
    expect(() => createThrottler({ policies: [{ limit: 1, interval: '1m', cooldown }] })).toThrow('escalating({ base: "1m", max: "1h" })')
  })
})
