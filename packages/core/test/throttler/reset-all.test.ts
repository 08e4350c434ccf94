import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { escalating } from '../../src/decide/escalating.ts'
import { ALL_LABEL, idOfKey } from '../../src/keys/key-id.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Usage } from '../../src/throttler/usage.ts'
import { type Node, offer, scene, thrownBy } from '../support/nodes.ts'

type Form = readonly [Algorithm, 'local' | 'background' | 'periodic']

const shared: readonly Form[] = [
  [fixedWindow(), 'background'],
  [fixedWindow(), 'periodic'],
  [slidingCounter(), 'periodic'],
]
const alone: readonly Form[] = [
  [fixedWindow(), 'local'],
  [slidingWindow(), 'local'],
  [slidingCounter(), 'local'],
  [slidingLog(), 'local'],
  [tokenBucket(), 'local'],
  [leakyBucket(), 'local'],
]

vi.setConfig({ testTimeout: 60_000 })

const LIMIT = 30

function nodes(count: number, [algorithm, coordination]: Form, more: object = {}): { all: Node[] } & ReturnType<typeof scene> {
  const here = scene()
  const policy = { name: 'login', limit: LIMIT, interval: '1m', algorithm, coordination, ...more } as const
  const all = Array.from({ length: count }, () => here.node(policy))
  for (const node of all) node.start()
  return { ...here, all }
}

describe.each([...shared, ...alone])('%o, %s', (...form) => {
  test('every key begins again, and a refund of an earlier request changes nothing', async () => {
    const { all, world, close } = nodes(1, form)
    const [one] = all as [Node]
    await world.run(50)
    const early = one.check('a', 5)
    for (const key of ['a', 'b', 'c']) offer(one, key, 10)
    const before = one.peek('new').remaining
    one.resetAll()
    for (const key of ['a', 'b', 'c']) expect(one.peek(key)).toMatchObject({ allowed: true, remaining: before })
    const late = one.check('a', 4)
    one.refund(early)
    expect(one.peek('a').remaining).toBe(before - 4)
    one.refund(late, 1)
    expect(one.peek('a').remaining).toBe(before - 3)
    await close()
  })
})

test.each([...shared, ...alone.slice(0, 5)])(
  'a cooldown ends and is not longer the next time, and a manual block stays (%o, %s)',
  async (...form) => {
    const { all, world, close } = nodes(1, form, { cooldown: escalating({ base: '2m', factor: 3, max: '1h' }) })
    const [one] = all as [Node]
    await world.run(50)
    for (let time = 0; time < 2; time++) {
      offer(one, 'a', LIMIT + 1)
      expect(one.check('a')).toMatchObject({ reason: 'cooldown' })
      expect(one.check('a').retryAfterMs).toBeLessThanOrEqual(120_000)
      one.resetAll()
      expect(one.check('a').reason).toBe('ok')
    }
    one.block('a', '10m')
    one.resetAll()
    expect(one.check('a')).toMatchObject({ reason: 'blocked', retryAfterMs: 600_000 })
    await close()
  },
)

test.each(shared)('cooldowns that are over do not make the next one longer (%o, %s)', async (...form) => {
  const { all, world, close } = nodes(2, form, { cooldown: escalating({ base: '70s', factor: 8, max: '1h', memory: '1h' }) })
  const [one, two] = all as [Node, Node]
  await world.run(50)
  offer(one, 'a', LIMIT + 1)
  await world.run(71_000)
  two.resetAll()
  await world.run(20)
  offer(one, 'a', LIMIT + 1)
  await world.run(100)
  expect(one.peek('a').reason).toBe('cooldown')
  expect(one.peek('a').retryAfterMs).toBeLessThanOrEqual(70_000)
  await close()
})

describe.each(shared)('%o, %s, in several processes', (...form) => {
  test('units that other processes have not sent count no more, for keys that the resetting process never had', async () => {
    const { all, world, close } = nodes(3, form)
    await world.run(50)
    for (const [i, node] of all.entries()) for (const key of ['a', `own-${i}`]) offer(node, key, 4)
    const young = all[0] as Node
    young.resetAll()
    await world.run(5)
    for (const [i, node] of all.entries()) for (const key of ['a', `own-${i}`]) expect(node.peek(key).remaining).toBe(LIMIT)
    offer(all[1] as Node, 'a', 2)
    await world.run(20)
    const used = await usedOf(world, all[2] as Node, 'a')
    expect(used).toBeGreaterThan(0)
    expect(used).toBeLessThanOrEqual(2)
    await close()
  })

  test('counts that the store has already count no more, even in a process that starts later', async () => {
    const here = nodes(2, form)
    const { all, world, close } = here
    await world.run(50)
    for (const node of all) for (const key of ['a', 'b']) offer(node, key, 12)
    await world.run(11_000)
    ;(all[0] as Node).resetAll()
    await world.run(20)
    const young = here.node(adapterOf(all[0] as Node).rules[0] as never)
    young.start()
    await world.run(50)
    for (const key of ['a', 'b']) expect(await usedOf(world, young, key)).toBe(0)
    await close()
  })

  test('a cooldown ends in all processes, and in one that starts later', async () => {
    const here = nodes(3, form, { cooldown: '2m' })
    const { all, world, store, close } = here
    await world.run(50)
    for (const node of all) offer(node, 'a', LIMIT + 1)
    await world.run(15_000)
    ;(all[1] as Node).resetAll()
    await world.run(20)
    for (const node of all) expect(node.peek('a')).toMatchObject({ reason: 'ok', remaining: LIMIT })
    // A store may return blocks in another order.
    const resets = store.requests.flatMap(({ request }) => request.blocks ?? []).filter(({ kind }) => kind === 'reset')
    expect(resets.map(({ key }) => key)).toEqual(['a', ALL_LABEL])
    const young = here.node(adapterOf(all[0] as Node).rules[0] as never)
    young.start()
    await world.run(50)
    expect(young.check('a')).toMatchObject({ reason: 'ok' })
    await close()
  })

  test('while the store is down it applies in this process, and in all once the store is back', async () => {
    const { all, world, store, close } = nodes(2, form)
    const [one, two] = all as [Node, Node]
    await world.run(50)
    offer(one, 'a', 4)
    offer(two, 'b', 5)
    await world.run(15_000)
    store.health = 'rejecting'
    await world.run(1_500)
    one.resetAll()
    store.health = 'up'
    await world.run(2_000)
    for (const key of ['a', 'b']) expect(await usedOf(world, two, key)).toBe(0)
    await close()
  })
})

async function usedOf(world: { run(ms: number): Promise<void> }, node: Node, key: string): Promise<number> {
  let usage: readonly Usage[] | undefined
  const asked = node.usage(key).then((result) => {
    usage = result
  })
  for (let waited = 0; usage === undefined && waited < 3_000; waited += 5) await world.run(5)
  await asked
  return usage?.[0]?.used ?? Number.NaN
}

type Step =
  | readonly ['check', number, number, string]
  | readonly ['reset', number]
  | readonly ['resetAll', number]
  | readonly ['run', number]

const at = fc.nat(2)
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(fc.constant('check' as const), at, fc.integer({ min: 1, max: 9 }), fc.constantFrom('a', 'b')),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constant('reset' as const), at) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('resetAll' as const), at) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('run' as const), fc.integer({ min: 1, max: 3_000 })) },
  ),
  { minLength: 5, maxLength: 40 },
)

test.each(shared.slice(0, 2))(
  'in the end the store has the units that were allowed since the last reset of any kind (%o, %s)',
  async (...form) => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const { all, world, store, close } = nodes(3, form, { limit: 1_000 })
        store.roundTrip = 4
        await world.run(50)
        const since = { a: 0, b: 0 }
        for (const step of list) {
          const node = all[step[0] === 'run' ? 0 : step[1]] as Node
          if (step[0] === 'check') {
            const key = step[3] as 'a' | 'b'
            for (let i = 0; i < step[2]; i++) if (node.check(key).allowed) since[key]++
          } else if (step[0] === 'run') await world.run(Math.min(step[1], Math.max(1, 50_000 - world.time)))
          else {
            if (step[0] === 'reset') node.reset('a')
            else node.resetAll()
            since.a = 0
            if (step[0] === 'resetAll') since.b = 0
            // Units that processes count before they receive the reset may be removed with it.
            await world.run(10)
          }
          if (world.time > 50_000) break
        }
        await world.run(50)
        for (const key of ['a', 'b'] as const) expect(await usedOf(world, all[0] as Node, key)).toBe(since[key])
        await close()
      }),
      { numRuns: 40 },
    )
  },
)

test('only the named policy is reset, and policies that the store counts are not', () => {
  const here = scene()
  const throttler = here.node([
    { name: 'one', limit: 5, interval: '1m' },
    { name: 'two', limit: 5, interval: '1m' },
  ])
  offer(throttler, 'a', 3)
  throttler.resetAll({ policy: 'two' })
  expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([2, 5])
  expect(thrownBy(() => throttler.resetAll({ policy: 'three' })).code).toBe('WEIR_UNKNOWN_POLICY')
  expect(thrownBy(() => throttler.resetAll('two' as never)).code).toBe('WEIR_INVALID_OPTION')
  for (const more of [
    { coordination: 'leased' },
    { coordination: 'central' },
    { algorithm: slidingWindow() },
    { algorithm: tokenBucket() },
    { algorithm: leakyBucket() },
  ] as const) {
    const other = here.node([
      { name: 'fits', limit: 5, interval: '1m' },
      { name: 'unfit', limit: 5, interval: '1m', ...more },
    ])
    expect(thrownBy(() => other.resetAll()).message).toContain('does not apply to policy "unfit". With a store it needs fixedWindow()')
    other.resetAll({ policy: 'fits' })
  }
})

test("a user's key with the label of all keys is a key like others", async () => {
  const { all, world, close } = nodes(2, [fixedWindow(), 'background'])
  const [one, two] = all as [Node, Node]
  await world.run(50)
  offer(one, ALL_LABEL, 3)
  offer(one, 'a', 3)
  one.reset(ALL_LABEL)
  await world.run(20)
  expect([one.peek(ALL_LABEL).remaining, one.peek('a').remaining]).toEqual([LIMIT, LIMIT - 3])
  expect(idOfKey(ALL_LABEL)).not.toBe(ALL_LABEL)
  one.block(ALL_LABEL, '1m')
  two.resetAll()
  await world.run(20)
  expect(one.check(ALL_LABEL).reason).toBe('blocked')
  expect(two.check(ALL_LABEL).reason).toBe('blocked')
  await close()
})

test('a reset of all keys leaves no key in the table', async () => {
  const { all, world, close } = nodes(2, [fixedWindow(), 'background'])
  await world.run(50)
  for (let i = 0; i < 3; i++) {
    ;(all[0] as Node).resetAll()
    await world.run(20)
    for (const node of all) expect(adapterOf(node).inspected.limiters.map(({ table }) => table.size)).toEqual([0])
  }
  await close()
})
