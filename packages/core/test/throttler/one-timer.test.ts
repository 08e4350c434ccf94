import { expect, test, vi } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene } from '../support/nodes.ts'
import type { TestStore } from '../support/stores.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

test.each([true, false])('a throttler has one timer, however many keys and policies (without a store: %s)', async (alone) => {
  const { world, node, close } = scene()
  const throttler = node(
    [
      { name: 'a', limit: 10, interval: 100, cooldown: 50 },
      { name: 'b', limit: 20, interval: '1m' },
      { name: 'c', limit: 20, interval: 777, coordination: alone ? 'local' : 'periodic' },
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
  // There are 6 spans, an interval and 60 heartbeats.
  expect(throttler.clock.timersSet).toBeLessThan(150)

  store.health = 'hanging'
  const before = throttler.clock.timersSet
  await world.run(60_000)
  // There is a probe each 300 ms, because each of them hangs as long.
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
  expect(throttler.state).toBe('storeDown')
  const before = throttler.clock.timersSet
  await world.run(200)
  expect(throttler.clock.timersSet - before).toBeLessThan(5)
  await close()
})

const faults: Readonly<Record<string, (store: TestStore, ms: number) => void>> = {
  down: (store) => {
    store.health = 'rejecting'
  },
  'down and up again, over and over': (store, ms) => {
    store.health = ms % 300 < 150 ? 'rejecting' : 'up'
  },
  hung: (store) => {
    store.health = 'hanging'
  },
  'hung and up again, over and over': (store, ms) => {
    store.health = ms % 700 < 350 ? 'hanging' : 'up'
  },
  mute: (store) => {
    store.health = 'mute'
  },
  slow: (store) => {
    store.roundTrip = 400
  },
  'silent for ever': (store) => {
    store.health = 'hanging'
    store.storeTimeout = Number.POSITIVE_INFINITY
  },
}

test.each(Object.keys(faults))('it fires at most 100 times a second while the store is %s', async (fault) => {
  const { world, node, store, close } = scene()
  store.roundTrip = 1
  store.storeTimeout = 1_000
  const nodes = [fixedWindow(), slidingWindow(), tokenBucket()].map((algorithm) => node({ limit: 1_000, interval: '10s', algorithm }))
  for (const one of nodes) {
    one.on('storeDown', () => {})
    one.start()
  }
  await world.run(2_000)
  for (let second = 0; second < 8; second++) {
    const before = nodes.map(({ clock }) => clock.timersFired)
    for (let ms = 0; ms < 1_000; ms += 20) {
      faults[fault]?.(store, 1_000 * second + ms)
      // New keys fall due one after the other, so that the maximum of syncs hangs.
      for (const one of nodes) offer(one, `key ${ms % 240}`, 3)
      await world.run(20)
    }
    nodes.forEach(({ clock }, place) => {
      expect(clock.timersFired - (before[place] as number)).toBeLessThanOrEqual(100)
    })
  }
  store.health = 'up'
  store.roundTrip = 0
  store.storeTimeout = 300
  await close()
})

test('a heartbeat goes out each second, also when the next span ends in hours', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 10, interval: '1d' }, { heartbeat: '1s' })
  throttler.start()
  await world.run(10_500)
  // After the start there are more heartbeats, because other processes may start at the same moment.
  const sent = store.requests.filter(({ request }) => request.heartbeat !== undefined).map(({ at }) => at)
  expect(sent.filter((at) => at < 1_000).length).toBeLessThanOrEqual(8)
  expect(sent.filter((at) => at >= 1_270)).toHaveLength(10)
  await close()
})

test('without a store, an interval longer than a timer can wait for', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: '365d', spans: 2 }, { alone: true })
  throttler.check('a')
  const delays: number[] = []
  const { setTimeout } = adapterOf(throttler).clock
  adapterOf(throttler).clock.setTimeout = function (callback, delay) {
    delays.push(delay)
    return setTimeout.call(this, callback, delay)
  }
  await world.run(30 * 86_400_000)
  expect(delays.length).toBeGreaterThan(0)
  expect(Math.max(...delays)).toBeLessThanOrEqual(2 ** 31 - 1)
  expect(delays.length).toBeLessThan(5)
})
