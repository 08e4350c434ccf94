import { expect, test } from 'vitest'
import { createGuard, nodeReader } from '../../src/http/adapter.ts'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { requestsOf } from '../../src/inspect/requests.ts'
import { parseStatus } from '../../src/inspect/status-text.ts'
import { Requests, SLOT, SLOTS } from '../../src/report/requests.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { scene } from '../support/nodes.ts'

const policy = (name: string, limit: number, more = {}) => ({ name, limit, interval: '1h' as const, ...more })

test('a request counts once, however many policies decide about it and whatever it costs', () => {
  const { node } = scene()
  const throttler = node([policy('a', 10), policy('b', 20), policy('c', 5, { dryRun: true })], { alone: true })
  for (let i = 0; i < 6; i++) throttler.check('key', 2)
  const { requests, policies } = snapshot(throttler)
  expect(requests).toMatchObject({ allowed: 5, rejected: 1, reasons: { limit: 1 } })
  // Each policy counts the units that it allowed. The dry run also counts the rejections that it would have made.
  expect(policies.map(({ allowed }) => allowed)).toEqual([10, 10, 4])
  expect(policies[2]?.rejected).toBeGreaterThan(0)
})

test('each way to ask counts once', async () => {
  const { node } = scene()
  const one = node([policy('a', 3)], { alone: true })
  one.check('x')
  adapterOf(one).decide(['x'], [1], [0], 1)
  await one.checkAsync('x')
  one.check('x')
  adapterOf(one).decide(['x'], [1], [0], 1)
  await adapterOf(one).decideAsync(['x'], [1])
  one.peek('x')
  expect(snapshot(one).requests).toMatchObject({ allowed: 3, rejected: 3 })

  const two = node([policy('a', 3), policy('b', 3)], { alone: true })
  for (let i = 0; i < 5; i++) two.check('x')
  adapterOf(two).decide(['x', 'y'], [1, 1])
  adapterOf(two).decide([undefined, undefined], [1, 1])
  expect(snapshot(two).requests).toMatchObject({ allowed: 3, rejected: 3, reasons: { limit: 3 } })
})

test('rejections are told by why', async () => {
  const { node, world } = scene()
  const throttler = node([policy('a', 2, { cooldown: '10m' })], { alone: true, maxKeys: 3, overflow: 'reject' })
  throttler.block('evil', '1h')
  throttler.check('evil')
  for (let i = 0; i < 5; i++) throttler.check('greedy')
  for (let i = 0; i < 5; i++) throttler.check(`key ${i}`)
  await expect(throttler.acquire('greedy', { timeout: 5 })).rejects.toThrow()
  await world.run(1)
  const { reasons, rejected } = snapshot(throttler).requests
  expect(reasons).toMatchObject({ blocked: 1, queue: 1, denied: 0 })
  expect(reasons.cooldown).toBeGreaterThan(0)
  expect(reasons.overflow).toBeGreaterThan(0)
  expect(rejected).toBe(Object.values(reasons).reduce((sum, count) => sum + count))
})

test('those of an adapter too: denied ones, and none in a dry run', async () => {
  const { node } = scene()
  const request = { url: '/', headers: {}, socket: { remoteAddress: '10.0.0.1' } } as never
  const denying = node([policy('a', 2, { key: 'ip' })], { alone: true })
  createGuard({ throttler: denying, deny: () => true }, nodeReader).check(request)
  expect(snapshot(denying).requests).toMatchObject({ allowed: 0, rejected: 1, reasons: { denied: 1 } })

  const dry = node([{ ...policy('a', 2), key: 'ip' }], { alone: true })
  const guard = createGuard({ throttler: dry, dryRun: true }, nodeReader)
  for (let i = 0; i < 5; i++) guard.check(request)
  expect(snapshot(dry).requests).toMatchObject({ allowed: 5, rejected: 0 })
})

test('a node remembers the last half hour, in a bounded place, without a timer of its own', () => {
  const requests = new Requests(0)
  for (let slot = 0; slot < SLOTS + 10; slot++) {
    requests.allowed += slot
    requests.reasons.limit += 1
    requests.tick((slot + 1) * SLOT)
  }
  const { allowed, rejected, ended } = requestsOf(requests, (SLOTS + 10) * SLOT + 400).history
  expect(ended).toBe(400)
  expect(allowed).toEqual(Array.from({ length: SLOTS }, (_, i) => SLOTS + 9 - i))
  expect(rejected).toEqual(Array.from({ length: SLOTS }, () => 1))
})

test('what came in a pause of which nothing is known is spread over it', () => {
  const requests = new Requests(0)
  requests.allowed = 40
  requests.tick(4.5 * SLOT)
  expect(requestsOf(requests, 5 * SLOT).history).toMatchObject({ allowed: [10, 10, 10, 10], ended: SLOT })
})

test('nodes tell each other of before somebody looked', async () => {
  const { world, node } = scene()
  const nodes = [node(policy('a', 1_000)), node(policy('a', 1_000))] as const
  for (const one of nodes) one.start()
  for (let i = 0; i < 60; i++) {
    nodes[1].check('x')
    await world.run(1_000)
  }
  for (let i = 0; i < 3; i++) {
    cluster(nodes[0])
    await world.run(1_000)
  }
  const other = cluster(nodes[0]).find(({ self }) => !self)
  expect(other?.requests.allowed).toBe(60)
  expect(other?.requests.history.allowed.slice(0, 4).reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(59)
})

test.each([
  { allowed: -1 },
  { rejected: 'many' },
  { reasons: {} },
  { history: { slot: 15_000, ended: 0, allowed: [1, null], rejected: [] } },
  { history: { slot: 1, ended: 0, allowed: [], rejected: [] } },
  { history: { slot: 15_000, ended: 0, allowed: new Array(121).fill(1), rejected: [] } },
])('a node that tells nonsense of its requests is not listened to: %j', (wrong) => {
  const { node } = scene()
  const throttler = node(policy('a', 10), { alone: true })
  const [status] = cluster(throttler)
  expect(parseStatus(JSON.stringify(status))).toBeDefined()
  expect(parseStatus(JSON.stringify({ ...status, requests: { ...status?.requests, ...wrong } }))).toBeUndefined()
})
