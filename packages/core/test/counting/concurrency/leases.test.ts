import { expect, test, vi } from 'vitest'
import { concurrency } from '../../../src/algorithms/concurrency/index.ts'
import type { Decision } from '../../../src/decide/decision.ts'
import type { AnyPolicyOptions } from '../../../src/decide/policy.ts'
import { type PolicySnapshot, snapshot } from '../../../src/inspect/index.ts'
import { adapterOf } from '../../../src/throttler/adapter-side.ts'
import { cuttable } from '../../support/cuttable.ts'
import { type Node, scene } from '../../support/nodes.ts'

const SLOTS = { name: 'slots', limit: 10, algorithm: concurrency(), coordination: 'leased', failMode: 'closed' } as const

/** Processes that have received an answer from their store. */
async function started(count: number, policies: AnyPolicyOptions<never> | readonly AnyPolicyOptions<never>[] = SLOTS) {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: count }, () => here.node(policies))
  for (const node of nodes) node.start()
  await here.world.run(3_000)
  /** The decision about a request, after some time. */
  const ask = async (node: Node, wait = 100, key = 'a', cost = 1): Promise<Decision> => {
    const decision = node.checkAsync(key, cost)
    await here.world.run(wait)
    return await decision
  }
  /** Makes requests one after another, and returns the allowed ones. */
  const fill = async (node: Node, count: number, key = 'a'): Promise<Decision[]> => {
    const allowed: Decision[] = []
    for (let i = 0; i < count; i++) {
      const decision = await ask(node, 60, key)
      if (decision.allowed) allowed.push(decision)
    }
    return allowed
  }
  return { ...here, nodes: nodes as [Node, Node, Node], ask, fill }
}

/** The queue is loaded with the first request that waits, which takes real time. */
async function waits(node: Node, count = 1): Promise<void> {
  await vi.waitFor(() => expect(node.waiting).toBe(count), { timeout: 10_000 })
  // Requests count as waiting from the call on, but their code is still being loaded in real time.
  await vi.dynamicImportSettled()
}

test("a new key's first request waits for the store, and others find slots that were taken ahead", async () => {
  const here = await started(2)
  const [node] = here.nodes
  let decided: Decision | undefined
  void node.checkAsync('a').then((decision) => {
    decided = decision
  })
  await here.world.run(1)
  expect(decided).toBeUndefined()
  await here.world.run(2)
  expect(decided).toMatchObject({ allowed: true })
  const next = adapterOf(node).decideAsync(['a'], [1])
  expect(next).not.toBeInstanceOf(Promise)
  expect(next).toMatchObject({ allowed: true })
  await here.close()
})

test('at most the limit is in flight at all nodes together, and what ends at one another may begin', async () => {
  const here = await started(3)
  const [one, two, three] = here.nodes
  const begun = [...(await here.fill(one, 6)), ...(await here.fill(two, 6)), ...(await here.fill(three, 6))]
  expect(begun).toHaveLength(10)
  expect(await here.ask(three)).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 0, resetAfterMs: 0, remaining: 0 })
  await here.world.run(30_000)
  expect(await here.fill(three, 2)).toHaveLength(0)
  one.release(begun[0] as Decision)
  one.release(begun[0] as Decision)
  await here.world.run(20)
  expect(await here.fill(three, 2)).toHaveLength(1)
  await here.close()
})

test('slots that nobody needs any more go back, and the key is forgotten', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  const begun = await here.fill(one, 10)
  expect(begun).toHaveLength(10)
  for (const decision of begun) one.release(decision)
  await here.world.run(100)
  expect(await here.fill(two, 10)).toHaveLength(10)
  await here.world.run(10_000)
  expect(adapterOf(one).inspected.limiters[0]?.table.size).toBe(0)
  expect(adapterOf(two).inspected.limiters[0]?.table.size).toBe(1)
  await here.close()
})

test('the slots of a node that is gone come back when it was not heard of for a heartbeat lifetime', async () => {
  const here = await started(1)
  const [living] = here.nodes
  const { node: dying, way } = cuttable(here, SLOTS)
  dying.start()
  await here.world.run(3_000)
  expect(await here.fill(dying, 6)).toHaveLength(6)
  await here.world.run(2_000)
  way.cut = true
  const died = here.world.time
  // The dying process may also have idle slots.
  const before = (await here.fill(living, 6)).length
  expect(before).toBeGreaterThan(0)
  expect(before).toBeLessThanOrEqual(4)
  await here.world.runTo(died + 2_900)
  expect(await here.fill(living, 1)).toHaveLength(0)
  await here.world.runTo(died + 4_500)
  expect(await here.fill(living, 11 - before)).toHaveLength(10 - before)
  way.cut = false
  await here.close()
})

test('a node that was silent for so long starts nothing on what it held, and tells what still runs', async () => {
  const here = await started(1)
  const [other] = here.nodes
  const { node, way } = cuttable(here, SLOTS)
  node.start()
  await here.world.run(3_000)
  const begun = await here.fill(node, 6)
  expect(begun).toHaveLength(6)
  // The process has these two slots idle.
  node.release(begun.pop() as Decision)
  node.release(begun.pop() as Decision)
  way.cut = true
  await here.world.run(1_000)
  expect((await here.ask(node)).allowed).toBe(true)
  await here.world.run(4_000)
  expect((await here.ask(node)).allowed).toBe(false)
  const others = await here.fill(other, 10)
  expect(others).toHaveLength(10)
  way.cut = false
  await here.world.run(3_000)
  // Five requests of it still run, so fifteen are in flight. More than five must end before a slot is free.
  expect((await here.ask(node)).allowed).toBe(false)
  for (const decision of others.splice(0, 5)) other.release(decision)
  await here.world.run(3_000)
  expect((await here.ask(other)).allowed).toBe(false)
  expect((await here.ask(node)).allowed).toBe(false)
  node.release(begun[0] as Decision)
  await here.world.run(50)
  expect((await here.ask(other)).allowed).toBe(true)
  expect((await here.ask(node)).allowed).toBe(false)
  await here.close()
})

test('a process that was held up for so long starts nothing on what it held either', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  const begun = await here.fill(one, 8)
  for (const decision of begun.splice(2)) one.release(decision)
  expect(one.peek('a').remaining).toBeGreaterThan(0)
  here.world.stall(10_000)
  // Before any timer fires or any reply arrives.
  const first = adapterOf(one).decideAsync(['a'], [1])
  expect(first).toBeInstanceOf(Promise)
  await here.world.run(3_000)
  const all = 3 + (await here.fill(two, 10)).length
  expect((await first).allowed).toBe(true)
  expect(all).toBe(10)
  await here.close()
})

test.each([
  ['closed', 0],
  ['share', 5],
  ['open', 20],
] as const)('while the store is away a node goes on with what it holds, then as its policy says: %s', async (failMode, beyond) => {
  const here = await started(2, { ...SLOTS, failMode })
  const [one] = here.nodes
  await here.ask(one)
  here.store.health = 'rejecting'
  await here.world.run(500)
  // Uses the slot that the process had idle.
  expect((await here.ask(one)).allowed).toBe(true)
  await here.world.run(6_000)
  const begun = await here.fill(one, 20)
  // Two requests are already in flight.
  expect(begun).toHaveLength(failMode === 'share' ? beyond - 2 : beyond)
  here.store.health = 'up'
  await here.world.run(2_000)
  const [, two] = here.nodes
  expect(await here.fill(two, 20)).toHaveLength(Math.max(0, 8 - begun.length))
  await here.close()
})

test('what the store has lost nodes tell again, and nothing new is granted for so long', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  expect(await here.fill(one, 6)).toHaveLength(6)
  here.store.hub.lose()
  await here.world.run(1_500)
  expect(await here.fill(two, 6)).toHaveLength(0)
  await here.world.run(6_000)
  expect(await here.fill(two, 6)).toHaveLength(4)
  await here.close()
})

test('a reset frees all slots of a key at all nodes, and what ends later frees none of those taken since', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  const before = [await here.fill(one, 5), await here.fill(two, 5)] as const
  one.reset('a')
  await here.world.run(1_500)
  expect(await here.fill(two, 11)).toHaveLength(10)
  for (const decision of before[0]) one.release(decision)
  for (const decision of before[1]) two.release(decision)
  await here.world.run(1_500)
  expect((await here.ask(one)).allowed).toBe(false)
  await here.close()
})

test('another limit holds for what begins from then on', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  const begun = await here.fill(one, 10)
  for (const node of [one, two]) node.update([{ ...SLOTS, limit: 12 }])
  expect(await here.fill(two, 5)).toHaveLength(2)
  for (const node of [one, two]) node.update([{ ...SLOTS, limit: 4 }])
  for (const decision of begun.splice(0, 8)) one.release(decision)
  await here.world.run(3_000)
  expect((await here.ask(one)).allowed).toBe(false)
  one.release(begun[0] as Decision)
  await here.world.run(50)
  expect((await here.ask(two)).allowed).toBe(true)
  expect((await here.ask(two)).allowed).toBe(false)
  await here.close()
})

test('requests take what they cost; the store counts whole slots', async () => {
  const here = await started(2, { ...SLOTS, limit: 3 })
  const [one, two] = here.nodes
  const halves = [await here.ask(one, 100, 'a', 0.5), await here.ask(one, 100, 'a', 0.5)]
  expect(halves.map(({ allowed }) => allowed)).toEqual([true, true])
  expect(await here.ask(two, 100, 'a', 3)).toMatchObject({ allowed: false })
  expect(await here.ask(two, 100, 'a', 4)).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  const large = await here.ask(two, 100, 'a', 2)
  expect(large.allowed).toBe(true)
  expect((await here.ask(one)).allowed).toBe(false)
  two.release(large)
  await here.world.run(50)
  expect((await here.ask(one, 100, 'a', 2)).allowed).toBe(true)
  for (const half of halves) one.release(half)
  await here.world.run(50)
  expect((await here.ask(two)).allowed).toBe(true)
  await here.close()
})

test('usage sums what is in flight at all nodes, and peek tells what is known here', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  await here.fill(one, 4)
  await here.fill(two, 3)
  const asked = one.usage('a')
  await here.world.run(1_000)
  expect(await asked).toMatchObject([{ policy: 'slots', limit: 10, used: 7, remaining: 3, source: 'store' }])
  expect(one.peek('unknown')).toMatchObject({ allowed: true, remaining: 10 })
  await here.fill(two, 3)
  await here.world.run(2_000)
  expect(one.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
  await here.close()
})

test('a slot that nobody releases is freed for all nodes when its time is over', async () => {
  const here = await started(2, { ...SLOTS, limit: 1, algorithm: concurrency({ maxDuration: '10s' }) })
  const [one, two] = here.nodes
  const expired: unknown[] = []
  one.on('slotExpired', ({ key, units }) => expired.push([key, units]))
  expect((await here.ask(one)).allowed).toBe(true)
  await here.world.run(9_000)
  expect((await here.ask(two)).allowed).toBe(false)
  await here.world.run(1_500)
  expect(expired).toEqual([['a', 1]])
  expect((await here.ask(two)).allowed).toBe(true)
  await here.close()
})

test('a dry run rejects nobody, and tells whom it would have rejected', async () => {
  const here = await started(2, { ...SLOTS, limit: 2, dryRun: true })
  const [one, two] = here.nodes
  const decisions = [await here.ask(one), await here.ask(one), await here.ask(two), await here.ask(two)]
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true])
  expect(decisions.at(-1)?.dryRun).toBe(true)
  await here.close()
})

test('a request that another policy rejects holds no slot', async () => {
  const rate = { name: 'rate', limit: 1, interval: '1h', coordination: 'local' } as const
  const here = await started(2, [{ ...SLOTS, limit: 2 }, rate])
  const [one, two] = here.nodes
  const first = await here.ask(one)
  expect(await here.ask(one)).toMatchObject({ allowed: false, policy: { name: 'rate' } })
  one.release(first)
  await here.world.run(3_000)
  two.update([{ ...SLOTS, limit: 2 }])
  await here.world.run(100)
  expect(await here.fill(two, 3)).toHaveLength(2)
  await here.close()
})

test('who waits for a slot gets one that comes free at another node', async () => {
  const here = await started(2, { ...SLOTS, limit: 1 })
  const [one, two] = here.nodes
  const held = await here.ask(one)
  let got: Decision | undefined
  void two.acquire('a', { timeout: '30s' }).then((decision) => {
    got = decision
  })
  await waits(two)
  await here.world.run(20_000)
  expect(got).toBeUndefined()
  one.release(held)
  await here.world.run(30)
  expect(got).toMatchObject({ allowed: true })
  two.release(got as Decision)
  await here.close()
})

test('who waits gets one also where news are lost, and when its holder is gone', async () => {
  const here = await started(1, { ...SLOTS, limit: 1 })
  here.store.announces = false
  const [waiting] = here.nodes
  const { node: dying, way } = cuttable(here, { ...SLOTS, limit: 1 })
  dying.start()
  await here.world.run(1_000)
  expect((await here.ask(dying)).allowed).toBe(true)
  const got: Decision[] = []
  void waiting.acquire('a', { timeout: '30s' }).then((decision) => got.push(decision))
  await waits(waiting)
  await here.world.run(2_000)
  way.cut = true
  await here.world.run(7_000)
  expect(got).toHaveLength(1)
  way.cut = false
  await here.close()
})

test('nodes whose requests wait all the time all get their turn', async () => {
  const here = await started(3, { ...SLOTS, limit: 4 })
  const ended = here.nodes.map(() => 0)
  let running = 0
  let most = 0
  let over = false
  const worker = async (node: Node, at: number): Promise<void> => {
    while (!over) {
      const decision = await node.acquire('a').catch(() => undefined)
      if (decision === undefined) return
      most = Math.max(most, ++running)
      await new Promise((resolve) => here.world.setTimer(() => resolve(undefined), 50))
      running--
      ended[at] = (ended[at] as number) + 1
      node.release(decision)
    }
  }
  // The first process has been there for long, and has most of the waiting requests.
  const workers = Array.from({ length: 30 }, () => worker(here.nodes[0], 0))
  await waits(here.nodes[0], 30)
  await here.world.run(2_000)
  const before = ended[0] as number
  expect(before).toBeGreaterThan(100)
  for (const at of [1, 2]) for (let i = 0; i < 5; i++) workers.push(worker(here.nodes[at] as Node, at))
  await Promise.all([waits(here.nodes[1], 5), waits(here.nodes[2], 5)])
  await here.world.run(10_000)
  expect(most).toBe(4)
  const [first, second, third] = ended as [number, number, number]
  const all = first - before + second + third
  expect(Math.min(second, third)).toBeGreaterThan(all / 10)
  expect(all).toBeGreaterThan((0.75 * 4 * 10_000) / 50)
  over = true
  await here.world.run(1_000)
  await here.close()
}, 30_000)

test('a snapshot tells what is in flight here and which slots lie idle, and the sum over the nodes is that of the cluster', async () => {
  const here = await started(2, { ...SLOTS, limit: 40 })
  const [one, two] = here.nodes
  const begun = await here.fill(one, 4)
  await here.fill(two, 2)
  one.release(begun[0] as Decision)
  await here.world.run(1_500)
  const [first, second] = [one, two].map((node) => snapshot(node).policies[0]) as [PolicySnapshot, PolicySnapshot]
  expect([first.inFlight, second.inFlight, first.allowed, second.allowed]).toEqual([3, 2, 4, 2])
  expect(first.leased).toBeGreaterThan(0)
  expect(first.leased + second.leased).toBeLessThanOrEqual(35)
  expect([first.overshoot, first.unsynced]).toEqual([0, 0])
  expect(snapshot(one).top).toMatchObject([{ key: 'a', own: 3, limit: 40 }])
  await here.close()
})

test('a key with a limit of its own has that at all nodes', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  const ask = async (node: Node, limit: number): Promise<boolean> => {
    const decision = node.checkAsync('a', { limit })
    await here.world.run(100)
    return (await decision).allowed
  }
  expect(await ask(one, 0)).toBe(false)
  const results: boolean[] = []
  for (let i = 0; i < 4; i++) results.push(await ask(i % 2 === 0 ? one : two, 3))
  expect(results).toEqual([true, true, true, false])
  expect(await ask(two, Number.POSITIVE_INFINITY)).toBe(true)
  await here.close()
})
