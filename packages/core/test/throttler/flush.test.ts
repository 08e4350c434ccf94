import { expect, test } from 'vitest'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { type NodeOptions, offer, scene } from '../support/nodes.ts'

const POLICY = { name: 'p', limit: 100, interval: 60_000 }

async function started(options: NodeOptions = {}) {
  const { world, store, node, close } = scene()
  store.roundTrip = 4
  const one = node(POLICY, options).start()
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
  return { world, store, one, total, settled, close }
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
