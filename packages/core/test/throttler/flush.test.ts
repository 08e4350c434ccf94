import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { started as startedCentrally } from '../support/central.ts'
import { type NodeOptions, offer, scene } from '../support/nodes.ts'

const POLICY = { name: 'p', limit: 100, interval: 60_000 }

async function started(options: NodeOptions = {}, policy: PolicyOptions = POLICY) {
  const it = scene()
  const { world, store, node, close } = it
  const one = node(policy, options)
  if (policy.coordination === 'central') await startedCentrally(it, one)
  store.roundTrip = 4
  one.start()
  await world.run(1_100)
  const total = () => store.total(one.policies[0] as never, 'a', one.clock.now()).taken
  /** Lets time pass until a promise has settled. */
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let pending = true
    void promise.finally(() => {
      pending = false
    })
    while (pending) await world.run(1)
    return promise
  }
  return { world, store, node, one, total, settled, close }
}

test('a flush sends the units that would wait for the end of their span', async () => {
  const { world, store, one, total, settled, close } = await started()
  offer(one, 'a', 3)
  await world.run(200)
  offer(one, 'a', 4)
  await world.settle()
  const before = store.requests.length
  expect(await settled(one.flush())).toBe(true)
  expect(total()).toBe(7)
  // It needs no heartbeat.
  expect(store.requests.slice(before).filter(({ request }) => request.heartbeat !== undefined)).toEqual([])
  const { length } = store.requests
  expect(await settled(one.flush())).toBe(true)
  expect(store.requests.slice(length)).toEqual([])
  await close()
})

test('a flush of the first invocation waits for the connection', async () => {
  const { store, node, close, world } = scene()
  store.roundTrip = 40
  const one = node(POLICY)
  offer(one, 'a', 5)
  const flushed = one.flush()
  await world.run(500)
  expect(await flushed).toBe(true)
  expect(store.total(one.policies[0] as never, 'a', one.clock.now()).taken).toBe(5)
  await close()
})

test('without an answer it resolves with false after the timeout, and the units are sent later', async () => {
  const { world, store, one, total, settled, close } = await started()
  store.health = 'hanging'
  offer(one, 'a', 5)
  const begun = world.time
  expect(await settled(one.flush({ timeout: 250 }))).toBe(false)
  expect(world.time - begun).toBeLessThanOrEqual(260)
  store.health = 'up'
  await world.run(2_000)
  expect(await settled(one.flush())).toBe(true)
  expect(total()).toBe(5)
  await close()
})

test('several flushes at a time all resolve', async () => {
  const { one, settled, total, close } = await started()
  offer(one, 'a', 2)
  const first = one.flush()
  offer(one, 'a', 2)
  expect(await settled(Promise.all([first, one.flush(), one.flush()]))).toEqual([true, true, true])
  expect(total()).toBe(4)
  await close()
})

test('a flush resolves with false when the throttler is closed before an answer', async () => {
  const { world, store, one, settled, close } = await started({ closeTimeout: 100 })
  store.health = 'mute'
  offer(one, 'a', 5)
  const flushed = one.flush({ timeout: '60s' })
  const begun = world.time
  await Promise.all([settled(one.close()), settled(flushed)])
  expect(await flushed).toBe(false)
  expect(world.time - begun).toBeLessThan(1_000)
  await close()
})

describe("with coordination 'central'", () => {
  const central = async () => {
    const it = await started({}, { ...POLICY, coordination: 'central' })
    const { one, settled } = it
    const decision = await settled(one.checkAsync('a', { cost: 10 }))
    expect(decision).toMatchObject({ allowed: true, remaining: 90 })
    /** The units of the key that the store has counted. */
    const used = async () => (await settled(one.usage('a')))[0]?.used
    return { ...it, decision, used }
  }

  test('a flush waits until the store has refunds and charges', async () => {
    const { one, store, world, decision, settled, used, close } = await central()
    store.roundTrip = 40
    one.refund(decision, 4)
    one.charge(decision, 1)
    const begun = world.time
    expect(await settled(one.flush())).toBe(true)
    expect(world.time - begun).toBeGreaterThanOrEqual(40)
    expect(await used()).toBe(7)
    await close()
  })

  test('it resolves with false without an answer, and later with true', async () => {
    const { one, store, world, decision, settled, used, close } = await central()
    store.health = 'hanging'
    one.refund(decision, 4)
    expect(await settled(one.flush({ timeout: 100 }))).toBe(false)
    store.health = 'up'
    await world.run(3_000)
    expect(await settled(one.flush())).toBe(true)
    expect(await used()).toBe(6)
    await close()
  })

  test('it waits for units that were allowed without the store', async () => {
    const { one, store, settled, used, close } = await central()
    store.health = 'mute'
    const flushed = settled(one.checkAsync('a', { cost: 5 })).then((decision) => {
      expect(decision.allowed).toBe(true)
      store.health = 'up'
      return one.flush({ timeout: '5s' })
    })
    expect(await settled(flushed)).toBe(true)
    expect(await used()).toBe(15)
    await close()
  })

  test('it waits only for what is older, so a busy process can flush too', async () => {
    const { one, store, world, decision, used, settled, close } = await central()
    store.roundTrip = 40
    one.refund(decision, 4)
    let flushed: boolean | undefined
    void one.flush().then((result) => {
      flushed = result
    })
    let charged = 0
    for (; charged < 80 && flushed === undefined; charged++) {
      one.charge(decision, 1)
      await world.run(1)
    }
    expect(flushed).toBe(true)
    expect(await settled(one.flush())).toBe(true)
    expect(await used()).toBe(6 + charged)
    await close()
  })

  test('a flush that is still waiting when the throttler is closed resolves with false', async () => {
    const { one, store, world, decision, settled, close } = await central()
    store.roundTrip = 2_000
    one.refund(decision, 4)
    const flushed = settled(one.flush({ timeout: '5s' }))
    await Promise.all([settled(one.close()), world.run(1)])
    expect(await flushed).toBe(false)
    await close()
  })

  test('closing waits for a refund', async () => {
    const { one, store, decision, settled, node, close } = await central()
    store.roundTrip = 40
    one.refund(decision, 4)
    await settled(one.close())
    store.roundTrip = 4
    const other = node({ ...POLICY, coordination: 'central' })
    expect(await settled(other.checkAsync('a'))).toMatchObject({ remaining: 93 })
    await close()
  })
})

test('without a store, before the start and after the end there is nothing to send', async () => {
  const { one, close } = await started()
  await close()
  expect(await one.flush()).toBe(true)
  const alone = createThrottler({ policies: [{ ...POLICY, coordination: 'local' }] })
  expect(await alone.flush()).toBe(true)
  alone.check('a')
  expect(await alone.flush()).toBe(true)
  await alone.close()
})

test.each([[{ timeout: 0 }], [{ timeout: '2h' }], [{ within: 5 }], [5], [null]])('flush(%o) rejects', async (options) => {
  const throttler = createThrottler({ policies: [{ ...POLICY, coordination: 'local' }] })
  await expect(throttler.flush(options as never)).rejects.toMatchObject({
    code: expect.stringMatching(/WEIR_(INVALID|UNKNOWN)_OPTION/),
  })
})
