import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { FIXED_WINDOW } from '../../src/algorithms/fixed-window/epoch.ts'
import { later } from '../../src/counting/later.ts'
import type { Exchanging, MakeShared } from '../../src/counting/site.ts'
import { leakyBucket, slidingWindow, tokenBucket } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Throttler } from '../../src/throttler/throttler.ts'
import { sharedForm, withForm } from '../support/forms.ts'
import { scene } from '../support/nodes.ts'
import type { World } from '../support/world.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** An algorithm whose shared meter is loaded when `load` is called. */
function loadedLater(given: Algorithm = FIXED_WINDOW): { algorithm: Algorithm; load: () => void; fail: () => void } {
  const make: MakeShared = (site, exchange) => sharedForm(given, 'background')(site, exchange) as Exchanging
  let load = (): void => {}
  let fail = (): void => {}
  const loading = new Promise<() => MakeShared>((resolve, reject) => {
    load = () => resolve(() => make)
    fail = () => reject(new Error('no such file'))
  })
  return { algorithm: withForm(given, 'background', later(() => loading)()), load: () => load(), fail: () => fail() }
}

const offer = (node: Throttler, key: string, count: number): number => {
  let allowed = 0
  for (let i = 0; i < count; i++) if (node.check(key).allowed) allowed++
  return allowed
}

async function usedAtAllNodes(world: World, node: Throttler, key: string): Promise<number | undefined> {
  const asked = node.usage(key)
  await world.run(500)
  return (await asked)[0]?.used
}

/** A process whose meter is still to be loaded, and another with its own meter. Two seconds into an interval. */
async function started(given?: Algorithm) {
  const here = scene()
  const { algorithm, load, fail } = loadedLater(given)
  const policy = { limit: 10, interval: 10_000 } as const
  const node = here.node({ ...policy, algorithm }).start()
  const other = here.node(given === undefined ? policy : { ...policy, algorithm: given }).start()
  await here.world.runTo(12_000)
  return { ...here, node, other, load, fail }
}

test('the local meter decides in the meantime, and the other nodes hear of what it has counted', async () => {
  const { world, node, other, load } = await started()
  expect(offer(node, 'a', 6)).toBe(6)
  expect(offer(node, 'b', 12)).toBe(10)
  await world.run(2_000)
  expect(other.peek('a').remaining).toBe(10)
  load()
  await world.run(100)
  expect(node.peek('a').remaining).toBe(4)
  expect(node.check('b').allowed).toBe(false)
  expect(offer(node, 'a', 1)).toBe(1)
  await world.run(3_000)
  expect(other.peek('b').remaining).toBe(0)
  expect(await usedAtAllNodes(world, other, 'a')).toBe(7)
})

test.each([slidingWindow(), tokenBucket({ burst: 10 }), leakyBucket({ burst: 9, immediate: 9 })])(
  'what is counted in the meantime counts on: $name',
  async (algorithm) => {
    const { world, node, other, load } = await started(algorithm)
    expect(offer(node, 'a', 12)).toBe(10)
    expect(offer(node, 'b', 4)).toBe(4)
    load()
    await world.run(50)
    expect(node.check('a').allowed).toBe(false)
    expect(offer(node, 'b', 9)).toBe(6)
    await world.run(450)
    expect(other.check('a').allowed).toBe(false)
  },
)

test.each([FIXED_WINDOW, slidingWindow(), tokenBucket()])(
  'what was charged above the limit in the meantime is told to the other nodes: $name',
  async (algorithm) => {
    const { world, node, other, load } = await started(algorithm)
    node.charge(node.check('a', 6), 50)
    load()
    await world.run(500)
    expect(other.peek('a').allowed).toBe(false)
  },
)

test('keys keep their slots: those that were forgotten and those that come', async () => {
  const { world, node, load } = await started()
  for (let i = 0; i < 100; i++) node.check(`old ${i}`)
  // The keys are removed two intervals later.
  await world.run(40_000)
  for (let i = 0; i < 50; i++) expect(offer(node, `key ${i}`, i % 10)).toBe(i % 10)
  load()
  await world.run(50)
  for (let i = 50; i < 200; i++) node.check(`key ${i}`)
  for (let i = 0; i < 50; i++) expect(node.peek(`key ${i}`).remaining).toBe(10 - (i % 10))
  for (let i = 50; i < 200; i++) expect(node.peek(`key ${i}`).remaining).toBe(9)
})

test('blocks and resets of the meantime are told', async () => {
  const { world, node, other, load } = await started()
  other.block('lifted', '1m')
  offer(other, 'reset', 10)
  await world.run(3_000)
  node.block('set', '1m')
  node.unblock('lifted')
  offer(node, 'reset', 3)
  node.reset('reset')
  expect(offer(node, 'reset', 2)).toBe(2)
  expect(other.check('set').allowed).toBe(true)
  load()
  await world.run(3_000)
  expect(other.check('set').reason).toBe('blocked')
  expect(other.check('lifted').allowed).toBe(true)
  expect(await usedAtAllNodes(world, other, 'reset')).toBe(2)
})

test('asking the store for a key waits until it can be asked', async () => {
  const { world, node, other, load } = await started()
  offer(other, 'a', 7)
  await world.run(1_000)
  const asked = node.usage('a')
  load()
  await world.run(500)
  expect(await asked).toMatchObject([{ used: 7, source: 'store' }])
})

test('what can not be loaded is said once, and the node counts alone', async () => {
  const here = scene()
  const { algorithm, fail } = loadedLater()
  const node = here.node({ limit: 10, interval: 10_000, algorithm })
  const warnings: string[] = []
  node.on('warning', ({ error }) => warnings.push(error.code))
  await here.world.runTo(12_000)
  expect(offer(node, 'a', 5)).toBe(5)
  fail()
  await here.world.run(1_000)
  expect(offer(node, 'a', 7)).toBe(5)
  expect(warnings).toEqual(['WEIR_NOT_LOADED'])
  expect(adapterOf(node).inspected.coordinator?.loading).toBeUndefined()
})

test('a throttler that was closed meanwhile stays closed, and one that has not started does not start', async () => {
  const { world, node, load, node: closed } = await started()
  const idle = scene()
  const second = loadedLater()
  const waiting = idle.node({ limit: 10, interval: 10_000, algorithm: second.algorithm })
  const closing = closed.close()
  await world.run(1_000)
  await closing
  load()
  second.load()
  await world.run(1_000)
  await idle.world.run(1_000)
  expect(() => node.check('a')).toThrow('closed')
  expect(waiting.state).toBe('idle')
  expect(offer(waiting, 'a', 12)).toBe(10)
})

test('a request waits for what is loaded where its policy may make it wait', async () => {
  const here = scene()
  const { algorithm, load } = loadedLater()
  const policies = [
    { name: 'later', limit: 10, interval: 10_000, algorithm },
    { name: 'leases', limit: 3, interval: 10_000, coordination: 'leased', storeTimeout: 1_000 },
  ] as const
  const node = here.node(policies).start()
  await here.world.runTo(12_000)
  let decided = 0
  const all = Array.from({ length: 5 }, () => node.checkAsync('a').finally(() => decided++))
  await here.world.run(500)
  expect(decided).toBe(0)
  load()
  await here.world.run(500)
  expect((await Promise.all(all)).map(({ allowed }) => allowed)).toEqual([true, true, true, false, false])
})

test('what is to be told of ever new keys is bounded while the code can not be loaded, and blocks by hand are told', async () => {
  const here = scene()
  const { algorithm, load } = loadedLater()
  const node = here.node({ limit: 10, interval: 10_000, cooldown: '1h', algorithm }, { maxKeys: 1_000 }).start()
  const other = here.node({ limit: 10, interval: 10_000, cooldown: '1h' }).start()
  await here.world.runTo(12_000)
  const heap = (): number => {
    // The first call may end a running collection, which keeps all objects that it has already visited.
    collect()
    collect()
    return process.memoryUsage().heapUsed
  }
  const many = async (from: number): Promise<void> => {
    for (let i = from; i < from + 20_000; i++) {
      node.reset(`reset ${i}`)
      node.unblock(`unblock ${i}`)
    }
    // The limiter's own list of resets is swept meanwhile.
    await here.world.run(60_000)
  }
  node.block('by hand', '1h')
  await many(0)
  const before = heap()
  for (let round = 1; round <= 4; round++) await many(round * 20_000)
  expect(heap() - before).toBeLessThan(4_000_000)
  load()
  await here.world.run(5_000)
  expect(other.check('by hand').reason).toBe('blocked')
})

test('a meter that can not be made leaves the one that stands in as it was', async () => {
  const here = scene()
  let fails = true
  const make: MakeShared = (site, exchange) => {
    if (fails) throw new Error('not yet')
    return sharedForm(FIXED_WINDOW, 'background')(site, exchange) as Exchanging
  }
  const algorithm = withForm(slidingWindow(), 'background', later(async () => () => make)())
  const node = here.node({ limit: 10, interval: 10_000, algorithm })
  const warnings: string[] = []
  node.on('warning', ({ error }) => warnings.push(error.code))
  await here.world.runTo(12_000)
  for (let i = 0; i < 20; i++) expect(offer(node, `key ${i}`, 6)).toBe(6)
  await here.world.run(1_000)
  expect(warnings).toEqual(['WEIR_NOT_LOADED'])
  for (let i = 0; i < 20; i++) expect(offer(node, `key ${i}`, 6)).toBe(4)
  expect(node.peek('key 3')).toMatchObject({ reason: 'storeDown' })
  fails = false
  await here.world.run(5_000)
  for (let i = 0; i < 20; i++) expect(offer(node, `key ${i}`, 1)).toBe(0)
  expect(offer(node, 'another', 12)).toBe(10)
})
