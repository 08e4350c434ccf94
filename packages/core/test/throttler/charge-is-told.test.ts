import { describe, expect, test } from 'vitest'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { createGuard } from '../../src/http/guard.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { type FakeRequest, fakeReader } from '../http/fake-request.ts'
import { ManualTime } from '../http/manual-time.ts'
import { type Node, offer, scene } from '../support/nodes.ts'

test.each([
  ['fixed', {}],
  ['sliding', { algorithm: slidingWindow() }],
] as const)('a charge that passes the limit is told to the other nodes at once, with a %s window', async (_name, window) => {
  const { world, node, close } = scene()
  const [a, b] = [0, 1].map(() => node({ limit: 100, interval: '1h', spans: 2, ...window })) as [
    ReturnType<typeof node>,
    ReturnType<typeof node>,
  ]
  for (const one of [a, b]) one.start()
  await world.run(5_000)
  // So many units are synced immediately, which leaves none that the charge could be sent with.
  const decision = a.check('k', 60)
  await world.run(1_000)
  a.charge(decision, 500)
  await world.run(20)
  expect(offer(b, 'k', 200)).toBe(0)
  expect(b.peek('k').remaining).toBe(0)
  await close()
})

describe('a charge of a rejected decision counts nothing, at no policy', () => {
  const policies = (dryRun: boolean) =>
    [
      { name: 'large', key: 'ip', limit: 100, interval: '1h' },
      { name: 'small', key: 'ip', limit: 1, interval: '1h', dryRun },
    ] as const
  const left = (throttler: Node) => throttler.peek('k').parts.map(({ remaining }) => remaining)

  test('of several policies', () => {
    const throttler = scene().node(policies(false), { alone: true })
    throttler.check('k')
    const rejected = throttler.check('k')
    expect(rejected.parts.map(({ allowed }) => allowed)).toEqual([true, false])
    throttler.charge(rejected, 50)
    expect(left(throttler)).toEqual([99, 0])
  })

  test('also where a guard lets it pass all the same', () => {
    const throttler = createThrottler({ policies: policies(false), clock: new ManualTime(0) })
    const guard = createGuard<FakeRequest, readonly [FakeRequest]>({ throttler: throttler as never, dryRun: true }, fakeReader)
    const request = { ip: '192.0.2.1' }
    guard.check(request)
    const passed = guard.check(request) as Decision
    expect(passed).toMatchObject({ allowed: true, dryRun: true })
    throttler.charge(passed as never, 50)
    expect(throttler.peek(passed.key).parts.map(({ remaining }) => remaining)).toEqual([99, 0])
  })

  test('while one that a policy would have rejected in its dry run took units at the others', () => {
    const throttler = scene().node(policies(true), { alone: true })
    throttler.check('k')
    throttler.charge(throttler.check('k'), 50)
    expect(left(throttler)[0]).toBe(48)
  })
})

test('where counts are exchanged at the ends of spans only, so is a charge', async () => {
  const { world, node, close } = scene()
  const [a, b] = [0, 1].map(() => node({ limit: 100, interval: '1m', coordination: 'periodic' })) as [
    ReturnType<typeof node>,
    ReturnType<typeof node>,
  ]
  for (const one of [a, b]) one.start()
  await world.run(5_000)
  a.charge(a.check('k'), 500)
  await world.run(20)
  expect(offer(b, 'k', 10)).toBe(10)
  await close()
})

test('without a store, or while it is away, a charge counts here', async () => {
  const { world, store, node, close } = scene()
  const alone = node({ limit: 10, interval: '1m' }, { alone: true })
  alone.charge(alone.check('k'), 20)
  expect(offer(alone, 'k', 1)).toBe(0)
  const one = node({ limit: 10, interval: '1m' })
  one.on('storeDown', () => {})
  one.start()
  await world.run(2_000)
  store.health = 'rejecting'
  await world.run(3_000)
  one.charge(one.check('k'), 20)
  expect(offer(one, 'k', 1)).toBe(0)
  store.health = 'up'
  await close()
})
