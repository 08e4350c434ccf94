import { expect, test, vi } from 'vitest'
import { offer, scene } from '../support/nodes.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 30_000 })

test.each([true, false])('a throttler has one timer, however many keys and policies (without a store: %s)', async (alone) => {
  const { world, node, close } = scene()
  const throttler = node(
    [
      { name: 'a', limit: 10, interval: 100, cooldown: 50 },
      { name: 'b', limit: 20, interval: '1m' },
      { name: 'c', limit: 20, interval: 777, coordination: alone ? 'local' : 'spans' },
    ],
    { alone },
  )
  expect(throttler.clock.outstanding).toBe(0)
  for (let i = 0; i < 300; i++) {
    offer(throttler, `key ${i % 40}`, 3)
    await world.run(7)
    expect(throttler.clock.outstanding).toBe(1)
  }
  await close()
  expect(throttler.clock.outstanding).toBe(0)
})

test('while the store is away too', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 10, interval: 500 })
  throttler.start()
  store.health = 'hanging'
  for (let i = 0; i < 100; i++) {
    offer(throttler, `key ${i % 7}`, 3)
    await world.run(13)
    expect(throttler.clock.outstanding).toBeLessThanOrEqual(1)
  }
  await close()
})

test('it fires seldom: at span ends, intervals and heartbeats, not in a loop', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 10, interval: 60_000 })
  throttler.start()
  await world.run(60_000)
  // 6 spans, an interval and 60 heartbeats.
  expect(throttler.clock.timersSet).toBeLessThan(150)

  store.health = 'hanging'
  const before = throttler.clock.timersSet
  await world.run(60_000)
  // A probe each 300 ms, as long as one hangs.
  expect(throttler.clock.timersSet - before).toBeLessThan(700)
  await close()
})

test('it does not spin while one exchange has failed and another one still hangs', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 10, interval: '1h' }, { heartbeat: '10s' })
  throttler.start()
  await world.run(50)
  store.health = 'hanging'
  offer(throttler, 'a', 10)
  await world.run(250)
  offer(throttler, 'b', 10)
  await world.run(60)
  expect(throttler.state).toBe('degraded')
  const before = throttler.clock.timersSet
  await world.run(200)
  expect(throttler.clock.timersSet - before).toBeLessThan(5)
  await close()
})

test('a heartbeat goes out each second, also when the next span ends in hours', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 10, interval: '1d' }, { heartbeat: '1s' })
  throttler.start()
  await world.run(10_500)
  expect(store.requests.filter(({ request }) => request.heartbeat !== undefined)).toHaveLength(11)
  await close()
})

test('without a store, an interval longer than a timer can wait for', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: '365d', spans: 2 }, { alone: true })
  throttler.check('a')
  const delays: number[] = []
  const { setTimeout } = throttler.clock
  throttler.clock.setTimeout = function (callback, delay) {
    delays.push(delay)
    return setTimeout.call(this, callback, delay)
  }
  await world.run(30 * 86_400_000)
  expect(delays.length).toBeGreaterThan(0)
  expect(Math.max(...delays)).toBeLessThanOrEqual(2 ** 31 - 1)
  expect(delays.length).toBeLessThan(5)
})
