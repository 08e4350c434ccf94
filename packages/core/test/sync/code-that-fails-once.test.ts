import { outOfFiles } from '@weir/tooling/out-of-files'
import { expect, test, vi } from 'vitest'
import type { Algorithm, AnyAlgorithm } from '../../src/algorithms/algorithm.ts'
import { later } from '../../src/counting/later.ts'
import type { Exchanging } from '../../src/counting/site.ts'
import type { Decision } from '../../src/decide/decision.ts'
import {
  type AnyPolicyOptions,
  concurrency,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Usage } from '../../src/throttler/usage.ts'
import { allowed, CENTRAL } from '../support/central.ts'
import { sharedForm, withForm } from '../support/forms.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'

/** Makes an algorithm's meter load again, because other tests of this process have already loaded all code. */
function unloaded(algorithm: AnyAlgorithm, coordination: 'background' | 'periodic' | 'leased'): Algorithm {
  const form = sharedForm(algorithm, coordination)
  return withForm(algorithm, coordination, later(async () => () => (site, exchange) => form(site, exchange) as Exchanging)())
}

type Rule = Omit<AnyPolicyOptions, 'limit'>

const INTERVAL = 10_000

/** Starts two processes that are connected but have no file descriptors to load their meters. Two seconds into an interval. */
async function started(rule: Rule) {
  const it = scene()
  const files = outOfFiles()
  const warned: string[] = []
  const said: string[] = []
  const { algorithm = fixedWindow(), coordination = 'background' } = rule
  const given = coordination === 'central' || coordination === 'local' ? algorithm : unloaded(algorithm, coordination)
  const nodes = [0, 1].map(() => it.node({ limit: 10, ...rule, algorithm: given } as AnyPolicyOptions))
  for (const node of nodes) {
    node.on('warning', ({ error }) => {
      warned.push(error.code)
      said.push(error.message)
    })
    node.start()
  }
  await it.world.runTo(INTERVAL + 2_000)
  return { ...it, files, warned, said, nodes: nodes as [Node, Node], [Symbol.asyncDispose]: () => it.close() }
}

async function ask({ world }: Scene, node: Node, count: number, key = 'k'): Promise<Decision[]> {
  const all = Promise.all(Array.from({ length: count }, () => node.checkAsync(key)))
  await world.run(50)
  return await all
}

/** Lets the retry succeed. Test files load in real time. */
async function untilLoaded(it: Scene, nodes: readonly Node[]): Promise<void> {
  for (
    let i = 0;
    i < 1_000 && nodes.some((one) => adapterOf(one).inspected.limiters.some(({ meter }) => meter.syncing === undefined));
    i++
  ) {
    await it.world.run(100)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const central = nodes.filter(({ policies }) => policies.some(({ coordination }) => coordination === 'central'))
  await vi.waitFor(() => expect(it.store.deciders).toBeGreaterThanOrEqual(central.length), 4_000)
}

const LATER: Readonly<Record<string, Rule>> = {
  'fixedWindow(), spans': { interval: INTERVAL, coordination: 'periodic' },
  'fixedWindow(), leases': { interval: INTERVAL, coordination: 'leased' },
  'fixedWindow(), central': { interval: INTERVAL, coordination: 'central' },
  'slidingWindow(), background': { interval: INTERVAL, algorithm: slidingWindow() },
  'slidingCounter(), spans': { interval: INTERVAL, algorithm: slidingCounter(), coordination: 'periodic' },
  'tokenBucket(), background': { interval: INTERVAL, algorithm: tokenBucket() },
  'leakyBucket(), background': { interval: INTERVAL, algorithm: leakyBucket({ burst: 9, immediate: 9 }) },
  'tokenBucket(), central': { interval: INTERVAL, algorithm: tokenBucket(), coordination: 'central' },
  'concurrency(), leases': { algorithm: concurrency(), coordination: 'leased' },
}

test('while code takes longer to load than a request waits, each process allows its share', async () => {
  const it = scene()
  let loaded = (): void => {}
  const loading = new Promise<void>((resolve) => {
    loaded = resolve
  })
  const form = sharedForm(fixedWindow(), 'leased')
  const leases = later(async () => {
    await loading
    return () => (site, exchange) => form(site, exchange) as Exchanging
  })()
  const algorithm = withForm(fixedWindow(), 'leased', leases)
  const rule = { limit: 10, interval: INTERVAL, coordination: 'leased', storeTimeout: 40, algorithm } as const
  const nodes = [0, 1].map(() => it.node(rule))
  for (const node of nodes) node.start()
  await it.world.runTo(INTERVAL + 2_000)
  for (const node of nodes) expect(allowed(await ask(it, node, 20))).toBe(5)
  loaded()
  await untilLoaded(it, nodes)
  await it.world.run(200)
  for (const node of nodes) expect(allowed(await ask(it, node, 20))).toBe(0)
  await it.close()
})

for (const [name, rule] of Object.entries(LATER)) {
  test(`${name}: while its code can't be loaded, each process allows its share, and afterwards all together the limit`, async () => {
    await using it = await started(rule)
    const { nodes, world, files, warned } = it
    for (const node of nodes) {
      const decisions = await ask(it, node, 20)
      expect(allowed(decisions)).toBe(5)
      const rejected = decisions.find(({ allowed }) => !allowed)
      expect(rejected?.retryAfterMs).toBeLessThanOrEqual(2 * INTERVAL)
    }
    expect(warned).toEqual(['WEIR_NOT_LOADED', 'WEIR_NOT_LOADED'])
    expect(files.tries).toBeGreaterThan(4)
    files.end()
    await untilLoaded(it, nodes)
    expect(nodes.every((one) => adapterOf(one).inspected.limiters[0]?.meter.syncing !== undefined)).toBe(true)
    // The earlier counts are handed over, and both processes count a new key.
    await world.run(300)
    const all = [...(await ask(it, nodes[0], 12, 'new')), ...(await ask(it, nodes[1], 12, 'new'))]
    expect(allowed(all)).toBeGreaterThanOrEqual(10)
    expect(allowed(all)).toBeLessThanOrEqual(rule.coordination === 'central' || rule.coordination === 'leased' ? 10 : 20)
    const asked = nodes[0].usage('k')
    await world.run(500)
    expect(await asked).toMatchObject([{ source: 'store' }])
    expect(warned).toHaveLength(2)
  })

  test(`${name}: fail-closed rejects, fail-open allows`, async () => {
    await using closed = await started({ ...rule, failMode: 'closed' })
    const rejected = await ask(closed, closed.nodes[0], 3)
    expect(rejected).toMatchObject([0, 1, 2].map(() => ({ allowed: false })))
    // The end of a request in flight can't be predicted, so slots have no time.
    if (rule.interval !== undefined) expect(rejected[0]?.retryAfterMs).toBeGreaterThan(0)
    // Rejected by "failMode", and no longer by the counts of this process alone.
    for (const text of closed.said) expect(text).toMatch(/"failMode"/)
    expect(closed.said).toHaveLength(2)
    expect(rejected[0]?.retryAfterMs).toBeLessThanOrEqual(INTERVAL)
    closed.files.end()
    await untilLoaded(closed, closed.nodes)
    expect(allowed(await ask(closed, closed.nodes[0], 3))).toBe(3)
    await using open = await started({ ...rule, failMode: 'open' })
    expect(allowed(await ask(open, open.nodes[0], 50))).toBe(50)
  })
}

test('what was counted without the code of central decisions is told to the store: requests, charges, refunds', async () => {
  await using it = await started({ interval: INTERVAL, coordination: 'central' })
  const { nodes, world, files, store } = it
  const [first, second] = (await ask(it, nodes[0], 2)) as [Decision, Decision]
  nodes[0].charge(first, 3)
  nodes[0].refund(second, 1)
  expect(store.decided).toEqual([])
  files.end()
  await untilLoaded(it, nodes)
  await world.run(2_000)
  const [verdict] = (await ask(it, nodes[1], 1)) as [Decision]
  expect(verdict).toMatchObject({ allowed: true, remaining: 5 })
})

const COUNTED = Object.entries(LATER).filter(([, { interval }]) => interval !== undefined)

test.each([
  ...COUNTED,
  ['slidingWindow(), central', { interval: INTERVAL, algorithm: slidingWindow(), coordination: 'central' }] as const,
  ['slidingLog(), central', { interval: INTERVAL, algorithm: slidingLog(), coordination: 'central' }] as const,
  ['slidingCounter(), central', { interval: INTERVAL, algorithm: slidingCounter(), coordination: 'central' }] as const,
])('%s: a charge beyond the limit is handed over whole to the code that is loaded', async (_, rule) => {
  await using it = await started(rule)
  const { nodes, world, files, store } = it
  const [decision] = (await ask(it, nodes[0], 1)) as [Decision]
  nodes[0].charge(decision, 34)
  files.end()
  await untilLoaded(it, nodes)
  await world.run(1_000)
  const asked = nodes[1].usage('k')
  await world.run(500)
  const [usage] = await asked
  expect(usage?.source).toBe('store')
  // The usage of a central key contains no more than the limit.
  const added = store.decided.flatMap(({ request }) => request.questions.filter(({ kind }) => kind === 'add').map(({ units }) => units))
  const used = rule.coordination === 'central' ? added.reduce((sum, units) => sum + units, 0) : usage?.used
  // A bucket has drained a little.
  const loses = rule.algorithm?.name.includes('Bucket') === true ? 5 : 0
  expect(used).toBeGreaterThan(34.9 - loses)
  expect(used).toBeLessThanOrEqual(35)
})

test('units of a bucket that warms up cost the warm-up once, when they are handed over too', async () => {
  const rule = { limit: 1_000, interval: INTERVAL, algorithm: tokenBucket({ warmUp: 5_000 }), coordination: 'central' } as const
  await using it = await started(rule)
  const { nodes, world, files } = it
  expect(allowed(await ask(it, nodes[0], 150))).toBe(150)
  const parts = rule.algorithm.step?.parameters({ name: 'p', id: 'p', limit: 1_000, interval: INTERVAL } as never)
  const state: number[] = []
  rule.algorithm.step?.add(state, 0, 150, 1_000, parts as readonly number[])
  const [owed = 0] = state
  files.end()
  await untilLoaded(it, nodes)
  await world.run(200)
  const asked = nodes[1].usage('k')
  await world.run(50)
  const used = ((await asked)[0] as Usage).used
  // The retry and the query take some time, in which the bucket drains a little.
  expect(used).toBeLessThanOrEqual(owed + 1)
  expect(used).toBeGreaterThan(owed - 130)
})

test('usage answers by what the process knows while the code can not be loaded', async () => {
  await using it = await started({ interval: INTERVAL, coordination: 'periodic' })
  await ask(it, it.nodes[0], 3)
  const asked = it.nodes[0].usage('k')
  await it.world.run(1_100)
  expect(await asked).toMatchObject([{ used: 3, source: 'node' }])
})

test('a decider that is rejected once is asked for again, with one warning; meanwhile "failMode" decides within the storeTimeout', async () => {
  const it = scene()
  const warned: string[] = []
  const open = it.store.open.bind(it.store)
  let failures = 3
  it.store.open = (node) => {
    const connection = open(node)
    return {
      ...connection,
      decider: async () => {
        if (failures-- > 0) throw new Error('no such script')
        return await (connection.decider as NonNullable<typeof connection.decider>)()
      },
    }
  }
  const node = it.node({ ...CENTRAL, failMode: 'closed' }).start()
  node.on('warning', ({ error }) => warned.push(error.code))
  await vi.waitFor(() => expect(warned).toEqual(['WEIR_NOT_LOADED']))
  const rejected = await ask(it, node, 2)
  await it.world.run(100)
  expect(allowed(rejected)).toBe(0)
  await it.world.run(2_000)
  expect(it.store.deciders).toBe(1)
  expect(allowed(await ask(it, node, 12))).toBe(10)
  expect(warned).toHaveLength(1)
  await it.close()
})

test('a policy that is no longer used is not loaded any more', async () => {
  const it = scene()
  const files = outOfFiles()
  const node = it.node({ limit: 10, interval: 1_000, algorithm: unloaded(slidingWindow(), 'background') }).start()
  await it.world.run(1_000)
  node.update([{ limit: 10, interval: 1_000, name: 'other' }])
  await it.world.run(60_000)
  node.update([{ limit: 11, interval: 1_000, name: 'other' }])
  await it.world.run(60_000)
  const { tries } = files
  await it.world.run(60_000)
  expect(files.tries).toBe(tries)
  await it.close()
})

test('while each process allows its share, decisions name the whole limit, also that of a single key', async () => {
  await using it = await started({ interval: INTERVAL, coordination: 'leased' })
  const [node] = it.nodes
  const decide = async (options?: { readonly limit: number }): Promise<Decision> => {
    const decision = node.checkAsync('k', options)
    await it.world.run(50)
    return await decision
  }
  expect(await decide()).toMatchObject({ limit: 10, remaining: 4 })
  expect(await decide({ limit: 20 })).toMatchObject({ limit: 20, remaining: 8 })
})
