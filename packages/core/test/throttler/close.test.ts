import { describe, expect, test } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene, thrownBy } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

const policy = { limit: 1_000, interval: '1m' } as const

test('what is left is sent, also of keys that no span end would send', async () => {
  const { world, node, store, close } = scene()
  const throttler = node(policy)
  throttler.start()
  await world.run(50)
  for (let i = 0; i < 3_000; i++) throttler.check(`key ${i}`)
  offer(throttler, 'a', 7)
  await close()
  const [checked] = throttler.policies as [Policy]
  expect(store.total(checked, 'a', EPOCH).taken).toBe(7)
  for (let i = 0; i < 3_000; i++) expect(store.total(checked, `key ${i}`, EPOCH).taken).toBe(1)
})

test('counts whose exchange is under way, and those made meanwhile, are all there at the end', async () => {
  const { world, node, store, close } = scene()
  store.roundTrip = 50
  const throttler = node(policy)
  throttler.start()
  await world.run(60)
  offer(throttler, 'a', 700)
  await world.run(10)
  offer(throttler, 'a', 20)
  const closing = close()
  await world.run(20)
  offer(throttler, 'a', 3)
  await closing
  expect(store.total(throttler.policies[0] as Policy, 'a', EPOCH).taken).toBe(723)
})

test.each(['hanging', 'rejecting', 'mute'] as const)('with a store that is %s it ends within its storeTimeout', async (health) => {
  const { world, node, store } = scene()
  store.storeTimeout = 60_000
  const throttler = node(policy, { closeTimeout: 700 })
  throttler.start()
  await world.run(50)
  offer(throttler, 'a', 5)
  store.health = health
  let closedAt = Number.POSITIVE_INFINITY
  const begun = world.time
  const closing = throttler.close().then(() => {
    closedAt = world.time
  })
  await world.run(2_000)
  await closing
  expect(closedAt - begun).toBeLessThanOrEqual(700)
  expect(throttler.state).toBe('closed')
})

test('counts that the store lost since the last heartbeat are there again', async () => {
  const { world, node, store, close } = scene()
  const throttler = node(policy)
  throttler.start()
  offer(throttler, 'a', 700)
  await world.run(500)
  store.hub.lose()
  await world.run(10)
  await close()
  expect(store.total(throttler.policies[0] as Policy, 'a', EPOCH).taken).toBe(700)
})

test('counts whose exchange fails while it closes are sent once the store is back, within its storeTimeout', async () => {
  const { world, node, store } = scene()
  const throttler = node(policy)
  throttler.start()
  await world.run(50)
  offer(throttler, 'a', 5)
  store.health = 'rejecting'
  const closing = throttler.close()
  await world.run(300)
  store.health = 'up'
  await world.run(1_000)
  await closing
  expect(store.total(throttler.policies[0] as Policy, 'a', EPOCH).taken).toBe(5)
})

test('a late answer does not wake a closed throttler', async () => {
  const { world, node, store } = scene()
  const throttler = node(policy, { closeTimeout: 300 })
  throttler.start()
  await world.run(50)
  store.roundTrip = 500
  offer(throttler, 'a', 900)
  const closing = throttler.close()
  await world.run(2_000)
  await closing
  expect(throttler.state).toBe('closed')
  expect(thrownBy(() => throttler.check('a')).code).toBe('WEIR_CLOSED')
  expect(throttler.clock.outstanding).toBe(0)
})

test('closed while the store is away, an answered probe does not wake it', async () => {
  const { world, node, store, close } = scene()
  const throttler = node(policy)
  throttler.start()
  store.health = 'rejecting'
  await world.run(1_100)
  expect(throttler.state).toBe('storeDown')
  store.health = 'up'
  store.roundTrip = 100
  // Closes between the store's answer and its arrival.
  const asked = store.requests.length
  while (store.requests.length === asked) await world.run(1)
  await world.run(60)
  await close()
  await world.run(1_000)
  expect(throttler.state).toBe('closed')
  expect(thrownBy(() => throttler.check('a')).code).toBe('WEIR_CLOSED')
})

test('a store whose connection never closes is waited for no longer than the storeTimeout', async () => {
  const { world, store, node } = scene()
  const open = store.open.bind(store)
  store.open = (it) => ({ ...open(it), close: () => new Promise(() => {}) })
  const throttler = node({ limit: 10, interval: 1_000 }, { closeTimeout: 400 })
  throttler.start()
  await world.runTo(50)
  let closed = false
  const closing = throttler.close().then(() => {
    closed = true
  })
  await world.run(390)
  expect(closed).toBe(false)
  await world.run(20)
  expect(closed).toBe(true)
  await closing
  expect(throttler.clock.outstanding).toBe(0)
})

test('twice is safe, and both wait for the same end', async () => {
  const { node, world } = scene()
  const throttler = node(policy)
  offer(throttler, 'a', 5)
  const first = throttler.close()
  expect(throttler.close()).toBe(first)
  await world.run(100)
  await first
  await throttler.close()
})

describe('after it', () => {
  test.each([true, false])('decisions throw WEIR_CLOSED (started before: %s)', async (started) => {
    const { node, close } = scene()
    const throttler = node([
      { name: 'a', ...policy },
      { name: 'b', ...policy },
    ])
    if (started) throttler.check('x')
    await close()
    const calls = [
      () => throttler.check('x'),
      () => throttler.peek('x'),
      () => adapterOf(throttler).decide(['x', 'x'], [1, 1]),
      () => adapterOf(throttler).decide([undefined, undefined], [1, 1]),
      () => throttler.block('x', '1s'),
      () => throttler.unblock('x'),
      () => throttler.start(),
    ]
    for (const call of calls) expect(thrownBy(call).code).toBe('WEIR_CLOSED')
    await expect(throttler.checkAsync('x')).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
  })

  test('a single policy too', async () => {
    const { node, close } = scene()
    const throttler = node(policy)
    throttler.check('x')
    await close()
    expect(thrownBy(() => throttler.check('x')).code).toBe('WEIR_CLOSED')
  })

  test('a snapshot still tells what was', async () => {
    const { node, close } = scene()
    const throttler = node(policy)
    offer(throttler, 'x', 5)
    await close()
    expect(snapshot(throttler)).toMatchObject({ state: 'closed', policies: [{ allowed: 5 }] })
  })

  test('no timer is left, and nothing is sent any more', async () => {
    const { world, node, store, close } = scene()
    const throttler = node(policy)
    throttler.check('x')
    await close()
    const sent = store.requests.length
    await world.run(120_000)
    expect(store.requests).toHaveLength(sent)
    expect(throttler.clock.outstanding).toBe(0)
  })

  test('the node no longer counts as live', async () => {
    const { world, node, close } = scene()
    const [one, two] = [0, 1].map(() => node(policy))
    one?.start()
    two?.start()
    await world.run(1_100)
    expect(snapshot(two as NonNullable<typeof two>).nodes).toBe(2)
    await close(one as never)
    await world.run(1_100)
    expect(snapshot(two as NonNullable<typeof two>).nodes).toBe(1)
    await close()
  })
})
