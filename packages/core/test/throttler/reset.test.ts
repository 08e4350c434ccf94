import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { escalating } from '../../src/decide/escalating.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Usage } from '../../src/throttler/usage.ts'
import { type Node, offer, scene, thrownBy } from '../support/nodes.ts'

type Form = readonly [Algorithm, 'local' | 'background' | 'periodic']

const shared: readonly Form[] = [
  [fixedWindow(), 'background'],
  [slidingWindow(), 'background'],
  [fixedWindow(), 'periodic'],
  [slidingCounter(), 'periodic'],
]
const forms: readonly Form[] = [...shared, [fixedWindow(), 'local'], [slidingWindow(), 'local'], [slidingCounter(), 'local']]

vi.setConfig({ testTimeout: 60_000 })

const LIMIT = 30

function nodes(count: number, [algorithm, coordination]: Form, more: object = {}): { all: Node[] } & ReturnType<typeof scene> {
  const here = scene()
  const policy = { name: 'login', limit: LIMIT, interval: '1m', algorithm, coordination, ...more } as const
  const all = Array.from({ length: count }, () => here.node(policy))
  for (const node of all) node.start()
  return { ...here, all }
}

describe.each(forms)('%o, %s', (...form) => {
  test('a reset begins the counts anew, and a refund of an earlier request changes nothing', async () => {
    const { all, world, close } = nodes(1, form)
    const [one] = all as [Node]
    await world.run(50)
    const early = one.check('a', 5)
    offer(one, 'a', 10)
    offer(one, 'b', 10)
    one.reset('a')
    expect(one.peek('a')).toMatchObject({ allowed: true, remaining: LIMIT })
    expect(one.peek('b').remaining).toBe(LIMIT - 10)
    const late = one.check('a', 4)
    one.refund(early)
    expect(one.peek('a').remaining).toBe(LIMIT - 4)
    one.refund(late, 1)
    expect(one.peek('a').remaining).toBe(LIMIT - 3)
    await close()
  })

  test('a reset ends a cooldown and forgets its growth; a block by hand stays', async () => {
    const { all, world, close } = nodes(1, form, { cooldown: escalating({ base: '2m', factor: 3, max: '1h' }) })
    const [one] = all as [Node]
    await world.run(50)
    for (let time = 0; time < 2; time++) {
      offer(one, 'a', LIMIT + 1)
      expect(one.check('a').reason).toBe('cooldown')
      const first = snapshot(one).blocked[0]?.remainingMs ?? 0
      one.reset('a')
      expect(one.check('a').reason).toBe('ok')
      expect(first).toBeLessThanOrEqual(120_000)
    }
    one.block('a', '10m')
    one.reset('a')
    expect(one.check('a')).toMatchObject({ reason: 'blocked', retryAfterMs: 600_000 })
    one.unblock('a')
    expect(one.peek('a').remaining).toBe(LIMIT)
    await close()
  })
})

describe.each(shared)('%o, %s, at several nodes', (...form) => {
  const own = form[1] === 'periodic'

  test('what other nodes hold and have not sent counts no more', async () => {
    const { all, world, close } = nodes(3, form)
    await world.run(50)
    for (const node of all) offer(node, 'a', 4)
    ;(all[0] as Node).reset('a')
    await world.run(5)
    for (const node of all) expect(node.peek('a').remaining).toBe(LIMIT)
    offer(all[1] as Node, 'a', 2)
    await world.run(30_000)
    const [{ used, source }] = (await ended(world, (all[2] as Node).usage('a'))) as [Usage]
    expect([used, source]).toEqual([2, 'store'])
    await close()
  })

  test('without announcements the others hear of it by their next heartbeat, or when they send', async () => {
    const { all, world, store, close } = nodes(3, form)
    await world.run(50)
    store.announces = false
    for (const node of all) offer(node, 'a', LIMIT)
    await world.run(300)
    ;(all[0] as Node).reset('a')
    await world.run(1_100)
    for (const node of all) expect(node.peek('a').remaining).toBe(LIMIT)
    await close()
  })

  test('a cooldown ends at all nodes, and starts anew there', async () => {
    const { all, world, close } = nodes(3, form, { cooldown: '2m' })
    await world.run(50)
    for (const node of all) offer(node, 'a', LIMIT + 1)
    await world.run(50)
    for (const node of all) expect(node.check('a').reason).toBe('cooldown')
    ;(all[1] as Node).reset('a')
    await world.run(5)
    for (const node of all) expect(node.peek('a')).toMatchObject({ reason: 'ok', remaining: LIMIT })
    if (!own) {
      offer(all[0] as Node, 'a', LIMIT + 1)
      await world.run(50)
      for (const node of all) expect(node.check('a').reason).toBe('cooldown')
    }
    await close()
  })

  test('while the store is away it holds here, and everywhere when it is back', async () => {
    const { all, world, store, close } = nodes(2, form)
    const [one, two] = all as [Node, Node]
    await world.run(50)
    offer(one, 'a', 4)
    offer(two, 'a', 5)
    await world.run(15_000)
    store.health = 'rejecting'
    await world.run(1_500)
    one.reset('a')
    expect(one.peek('a').remaining).toBeGreaterThan(0)
    offer(one, 'a', 2)
    store.health = 'up'
    await world.run(2_000)
    expect(two.peek('a').remaining).toBeGreaterThanOrEqual(LIMIT - 2)
    const [{ used }] = (await ended(world, two.usage('a'))) as [Usage]
    expect(used).toBe(2)
    await close()
  })

  test('after the store has lost its data it still holds', async () => {
    const { all, world, store, close } = nodes(3, form)
    await world.run(50)
    for (const node of all) offer(node, 'a', 12)
    await world.run(11_000)
    ;(all[0] as Node).reset('a')
    await world.run(20)
    offer(all[1] as Node, 'a', 3)
    await world.run(20)
    store.hub.lose()
    await world.run(13_000)
    const [{ used }] = (await ended(world, (all[2] as Node).usage('a'))) as [Usage]
    expect(used).toBe(3)
    await close()
  })

  test('a node that starts later takes it over', async () => {
    const here = nodes(2, form)
    const { all, world, close } = here
    await world.run(50)
    for (const node of all) offer(node, 'a', 12)
    await world.run(11_000)
    ;(all[0] as Node).reset('a')
    await world.run(20)
    const young = here.node(adapterOf(all[0] as Node).rules[0] as never)
    young.start()
    await world.run(50)
    offer(young, 'a', 5)
    await world.run(12_000)
    const [{ used }] = (await ended(world, (all[0] as Node).usage('a'))) as [Usage]
    expect(used).toBe(5)
    await close()
  })

  test('counts of the next interval are as ever', async () => {
    const { all, world, close } = nodes(2, form)
    await world.run(50)
    for (const node of all) offer(node, 'a', 12)
    ;(all[0] as Node).reset('a')
    for (let minute = 1; minute < 6; minute++) {
      await world.runTo(minute * 60_000 + 100)
      for (const node of all) offer(node, 'a', 6)
      await world.run(25_000)
      const [{ used }] = (await ended(world, (all[1] as Node).usage('a'))) as [Usage]
      expect(used).toBeGreaterThanOrEqual(12)
    }
    await close()
  })
})

/** Lets the world's time pass until a promise settles. */
async function ended<T>(world: { run(ms: number): Promise<void> }, promise: Promise<readonly T[]>): Promise<T[]> {
  let done = false
  const settled = promise.finally(() => {
    done = true
  })
  for (let waited = 0; !done && waited < 3_000; waited += 5) await world.run(5)
  return [...(await settled)]
}

test.each<Form>([
  [fixedWindow(), 'background'],
  [slidingWindow(), 'background'],
  [tokenBucket(), 'background'],
])('a process that starts long after a reset gets the counts since then (%o, %s)', async (...form) => {
  const here = nodes(1, form)
  const { all, world, close } = here
  const [one] = all as [Node]
  await world.run(50)
  offer(one, 'a', 5)
  one.reset('a')
  await world.run(6_500)
  offer(one, 'a', LIMIT)
  await world.run(50)
  const young = here.node(adapterOf(one).rules[0] as never)
  young.start()
  await world.run(50)
  expect(offer(young, 'a', LIMIT)).toBeLessThan(LIMIT / 3)
  await close()
})

type Step = readonly ['check', number, number] | readonly ['reset', number] | readonly ['run', number] | readonly ['quiet', boolean]

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.tuple(fc.constant('check' as const), fc.nat(2), fc.integer({ min: 1, max: 9 })) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('reset' as const), fc.nat(2)) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('run' as const), fc.integer({ min: 1, max: 3_000 })) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('quiet' as const), fc.boolean()) },
  ),
  { minLength: 5, maxLength: 40 },
)

test.each(shared.slice(0, 2))(
  'whatever happens, in the end the store has what was allowed since the last reset (%o, %s)',
  async (...form) => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const { all, world, store, close } = nodes(3, form, { limit: 1_000 })
        store.roundTrip = 4
        await world.run(50)
        let since = 0
        for (const step of list) {
          const [what, at] = step
          if (what === 'check') {
            const node = all[at] as Node
            for (let i = 0; i < step[2]; i++) if (node.check('a').allowed) since++
          } else if (what === 'reset') {
            ;(all[at] as Node).reset('a')
            since = 0
            // Units that processes count before they receive the reset may be removed with it.
            store.announces = true
            await world.run(10)
          } else if (what === 'run') await world.run(Math.min(at, 55_000 - world.time < at ? 1 : at))
          else store.announces = !at
          if (world.time > 50_000) break
        }
        store.announces = true
        await world.run(50)
        const [{ used, source }] = (await ended(world, (all[0] as Node).usage('a'))) as [Usage]
        expect([used, source]).toEqual([since, 'store'])
        await close()
      }),
      { numRuns: 40 },
    )
  },
)

test('a reset takes the policy that is named, and a key as it is counted', () => {
  const throttler = scene().node([
    { name: 'one', limit: 5, interval: '1m' },
    { name: 'two', limit: 5, interval: '1m' },
  ])
  offer(throttler, 'a', 3)
  throttler.reset('a', { policy: 'two' })
  expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([2, 5])
  expect(thrownBy(() => throttler.reset('a', { policy: 'three' })).code).toBe('WEIR_UNKNOWN_POLICY')
  expect(thrownBy(() => throttler.reset(7 as never)).code).toBe('WEIR_INVALID_KEY')
  const long = 'k'.repeat(1_000)
  throttler.check(long)
  throttler.reset(throttler.peek(long).key)
  expect(throttler.peek(long).parts.map(({ remaining }) => remaining)).toEqual([5, 5])
})

test('keys that were never reset carry nothing more', async () => {
  const { all, world, store, close } = nodes(2, [fixedWindow(), 'background'])
  await world.run(50)
  for (const node of all) offer(node, 'a', LIMIT)
  await world.run(61_000)
  const entries = store.requests.flatMap(({ request }) => request.entries)
  expect(entries.length).toBeGreaterThan(0)
  for (const entry of entries) expect(Object.keys(entry).sort()).toEqual(['cells', 'key', 'policy'])
  await close()
})
