import { expect, test } from 'vitest'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

function started(cell: (typeof EACH_CELL)[number]): { here: Scene; node: Node } {
  const { algorithm, coordination } = cell
  const here = scene()
  const policy = { limit: 10, algorithm, coordination, ...(cell.name !== 'concurrency()' && { interval: 1_000 }) }
  const node = here.node(policy as unknown as AnyPolicyOptions, { alone: coordination === 'local' })
  node.start()
  return { here, node }
}

/** How many of 30 calls wait: all of them if the store decides, and otherwise the calls that `check` would not allow at once. */
function expected(cell: (typeof EACH_CELL)[number]): number {
  if (cell.coordination === 'leased' || cell.coordination === 'central') return 30
  const { node } = started({ ...cell, coordination: 'local' })
  return Array.from({ length: 30 }, () => node.check('a')).filter(({ allowed, delayMs: delay }) => !allowed || delay > 0).length
}

/** Closes while code may still be loading, which takes real time. */
async function close(here: Scene, node: Node): Promise<void> {
  let closed = false
  const closing = node.close().finally(() => {
    closed = true
  })
  while (!closed) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(5)
  }
  await closing
}

for (const [title, loaded] of [
  ['the first requests of a process', false],
  ['later ones', true],
] as const) {
  test.each(EACH_CELL)(`requests that wait are counted from their call on, ${title}: $name, $coordination`, async (cell) => {
    const { here, node } = started(cell)
    if (loaded) await waiting(here, node)
    await here.world.run(2_000)
    const all = Array.from({ length: 30 }, () => node.acquire('a', { timeout: '9s' }).catch(() => {}))
    const counted = node.waiting
    // The cost of a unit in a bucket that warms up is known only after the first unit was used.
    expect(expected(cell) - counted).toBeLessThanOrEqual(cell.name === 'tokenBucket()' && !loaded ? 1 : 0)
    expect(counted).toBeLessThanOrEqual(expected(cell))
    expect(node.waiting).toBe(counted)
    await close(here, node)
    await Promise.all(all)
    expect(node.waiting).toBe(0)
  })
}

test('the first requests that wait are counted by their costs, keys and limits', async () => {
  const here = scene()
  const policies = [
    { name: 'own', limit: 10, interval: 1_000, coordination: 'local' },
    { name: 'all', key: 'all', limit: 15, interval: 1_000, coordination: 'local' },
  ] as const
  const node = here.node(policies as unknown as AnyPolicyOptions[], { alone: true })
  const all: Promise<unknown>[] = []
  const acquire = (...given: Parameters<Node['acquire']>): number => {
    all.push(node.acquire(...given).catch(() => {}))
    return node.waiting
  }
  expect(acquire('a', { cost: 8 })).toBe(0)
  expect(acquire('a', { cost: 3 })).toBe(1)
  expect(acquire('a', { cost: 2 })).toBe(1)
  expect(acquire('b', { cost: 6 })).toBe(2)
  expect(acquire('b')).toBe(2)
  expect(acquire('b', { limit: 0 })).toBe(3)
  expect(acquire('b', { cost: 5 })).toBe(4)
  await close(here, node)
  await Promise.all(all)
  expect(node.waiting).toBe(0)
})
