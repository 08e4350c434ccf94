import { expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { createGuard } from '../../src/http/adapter.ts'
import { fakeReader } from '../http/fake-request.ts'
import { ask, type Held, holding, leaving } from '../support/held.ts'
import { type Node, type Scene, scene, thrownBy } from '../support/nodes.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Allows a request each 100 ms, and four more may wait. */
const PACED = { limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 4 }) } as const

/** Connected processes. */
async function started(count: number, more: Partial<PolicyOptions<never>> = {}): Promise<Scene & { readonly nodes: readonly Node[] }> {
  const it = scene()
  it.store.roundTrip = 2
  const nodes: Node[] = []
  for (let i = 0; i < count; i++) nodes.push(await holding(it, { ...PACED, ...more }))
  for (const node of nodes) node.start()
  await it.world.runTo(5_000)
  return { ...it, nodes }
}

function allowed(held: readonly Held[]): number[] {
  return held
    .filter(({ decision }) => decision?.allowed === true)
    .map(({ at }) => at as number)
    .sort((a, b) => a - b)
}

test('a node alone holds what its burst lets wait, and rejects what comes beyond it at once', async () => {
  const it = await started(1)
  const [node] = it.nodes as [Node]
  const held = Array.from({ length: 7 }, () => ask(it, node, 'a'))
  await it.world.run(0)
  expect(held.map(({ decision }) => decision?.allowed)).toEqual([true, undefined, undefined, undefined, undefined, false, false])
  expect(held[5]?.decision).toMatchObject({ reason: 'limit', delayMs: 0 })
  expect(held[5]?.decision?.retryAfterMs).toBeGreaterThan(0)
  await it.world.run(1_000)
  expect(allowed(held).map((at) => at - 5_000)).toEqual([0, 100, 200, 300, 400])
  await it.close()
})

test('nodes hold requests so that all keep the pace together, and reject what none of them has room for', async () => {
  const it = await started(3)
  const [one, other, third] = it.nodes as [Node, Node, Node]
  const held = [ask(it, one, 'a')]
  await it.world.run(20)
  held.push(ask(it, other, 'a'))
  await it.world.run(10)
  held.push(ask(it, third, 'a'))
  await it.world.run(10)
  held.push(ask(it, one, 'a'))
  await it.world.run(10)
  held.push(ask(it, other, 'a'))
  await it.world.run(10)
  // Four requests wait, at three processes.
  const beyond = [ask(it, one, 'a'), ask(it, third, 'a')]
  await it.world.run(50)
  // One of the four has ended.
  held.push(ask(it, third, 'a'))
  await it.world.run(10)
  beyond.push(ask(it, one, 'a'))
  await it.world.run(2_000)
  expect(allowed(held)).toHaveLength(6)
  for (const [place, at] of allowed(held).entries()) expect(Math.abs(at - 5_000 - 100 * place)).toBeLessThanOrEqual(3)
  expect(beyond.map(({ decision }) => decision?.allowed)).toEqual([false, false, false])
  await it.close()
})

test('what is `immediate` passes at once', async () => {
  const it = await started(2, { algorithm: leakyBucket({ burst: 5, immediate: 3 }) })
  const [one, other] = it.nodes as [Node, Node]
  const held = Array.from({ length: 4 }, () => ask(it, one, 'a'))
  await it.world.run(20)
  expect(allowed(held)).toHaveLength(4)
  const late = Array.from({ length: 3 }, () => ask(it, other, 'a'))
  await it.world.run(1_000)
  expect(allowed(late).map((at) => Math.round((at - 5_000) / 50) * 50)).toEqual([100, 200])
  expect(late[2]?.decision).toMatchObject({ allowed: false })
  await it.close()
})

test('the place of a request whose client goes away is the next one at its node', async () => {
  const it = await started(2)
  const [one, other] = it.nodes as [Node, Node]
  const first = ask(it, one, 'a')
  await it.world.run(20)
  const response = leaving()
  const gone = ask(it, other, 'a', { response })
  const next = ask(it, other, 'a')
  await it.world.run(20)
  response.leave()
  await it.world.run(500)
  expect(first.at).toBe(5_000)
  expect(gone.error).toMatchObject({ reason: 'aborted' })
  expect((next.at as number) - 5_000).toBeLessThanOrEqual(105)
  await it.close()
})

test('a key with a limit of its own is held by the pace of that', async () => {
  const it = await started(1)
  const [node] = it.nodes as [Node]
  const decide = (): Promise<{ allowed: boolean }> => node.checkAsync('a', { limit: 2 })
  const ended: (boolean | number)[] = []
  for (let i = 0; i < 6; i++) void decide().then(({ allowed }) => ended.push(allowed && it.world.time - 5_000))
  await it.world.run(4_000)
  expect(ended).toEqual([0, false, 500, 1_000, 1_500, 2_000])
  await it.close()
})

test('while the store is away a node holds requests by its share of the pace', async () => {
  const it = await started(2)
  const [one] = it.nodes as [Node]
  it.store.health = 'rejecting'
  await it.world.run(2_000)
  const held = Array.from({ length: 4 }, () => ask(it, one, 'a'))
  await it.world.run(5_000)
  const went = allowed(held)
  expect(went.length).toBeGreaterThanOrEqual(2)
  for (const [place, at] of went.entries()) if (place > 0) expect(at - (went[place - 1] as number)).toBeGreaterThanOrEqual(99)
  await it.close()
})

test('a dry run holds nothing, and counts what would find no room', async () => {
  const it = await started(1, { dryRun: true })
  const [node] = it.nodes as [Node]
  const decisions = Array.from({ length: 7 }, () => node.check('a'))
  expect(decisions.every(({ allowed, delayMs: delay }) => allowed && delay === 0)).toBe(true)
  expect(decisions.map(({ reason }) => reason)).toEqual([...Array.from({ length: 5 }, () => 'ok'), 'limit', 'limit'])
  await it.close()
})

test('an adapter holds requests after an update by which they wait, and none after one by which they do not', async () => {
  const it = await started(1, { algorithm: leakyBucket({ burst: 4, immediate: 4 }) })
  const [node] = it.nodes as [Node]
  const rule = { name: 'default', key: 'all', limit: 10, interval: 1_000 } as const
  node.update([{ ...rule, algorithm: leakyBucket({ burst: 4 }) }])
  const guard = createGuard(node, fakeReader)
  await guard.check({})
  const held = guard.check({})
  expect(held).toBeInstanceOf(Promise)
  await vi.waitFor(() => expect(node.waiting).toBe(1))
  await it.world.run(110)
  expect(await held).toMatchObject({ allowed: true, delayMs: 0 })
  node.update([{ ...rule, algorithm: leakyBucket({ burst: 4, immediate: 4 }) }])
  expect(node.check('b')).toMatchObject({ allowed: true })
  await it.close()
})

test('`check` can not wait, and says so', () => {
  const it = scene()
  const node = it.node(PACED)
  expect(thrownBy(() => node.check('a'))).toMatchObject({ code: 'WEIR_ASYNC_POLICY' })
})

test.each([
  [{ cost: 2 }, /"cost" is 2. Use at most the units that need not wait, 1/],
  [{ cooldown: '1s' }, /^Remove "cooldown": leakyBucket\(\) delays requests/],
  [{ delay: '1s' }, /^Remove "delay": leakyBucket\(\) already delays/],
] as const)('rejects %o', (more, says) => {
  expect(thrownBy(() => scene().node({ ...PACED, ...more } as never)).message).toMatch(says)
})
