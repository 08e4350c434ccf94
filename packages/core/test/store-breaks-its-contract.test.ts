import { afterEach, beforeEach, expect, test } from 'vitest'
import type { StoreConnection } from '../src/store/contract.ts'
import { backgroundStore } from '../src/sync/coordinator.ts'
import { Throttler } from '../src/throttler/throttler.ts'
import { World } from './support/world.ts'

const unhandled: unknown[] = []
const hear = (reason: unknown): void => {
  unhandled.push(reason)
}

beforeEach(() => {
  process.on('unhandledRejection', hear)
})

afterEach(() => {
  process.off('unhandledRejection', hear)
})

const broken: [string, () => unknown][] = [
  [
    'throws',
    () => {
      throw new Error('broken')
    },
  ],
  ['returns nothing', () => undefined],
  ['answers nothing', () => Promise.resolve(undefined)],
  ['answers null', () => Promise.resolve(null)],
  ['answers without results', () => Promise.resolve({ time: 0 })],
  ['rejects with nothing', () => Promise.reject(undefined)],
  ['rejects with a string', () => Promise.reject('away')],
]

test.each(broken)('a store whose sync %s counts as one that is away', async (_, sync) => {
  const world = new World()
  const connection = { sync, close: () => Promise.resolve() } as unknown as StoreConnection
  const throttler = new Throttler({
    policies: [{ limit: 10, interval: 1_000 }],
    clock: world.clock(),
    store: backgroundStore({ kind: 'broken', open: () => connection }),
  })
  for (let i = 0; i < 20; i++) {
    expect(throttler.check(`key ${i}`).allowed).toBe(true)
    await world.run(100)
  }
  expect(throttler.state).toBe('degraded')
  expect(throttler.snapshot().sync.failures).toBeGreaterThan(5)
  const closing = throttler.close()
  await world.run(2_000)
  await closing
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled.splice(0)).toEqual([])
})

test('an answer with fewer results than entries, or a clock that is none, does no harm', async () => {
  const world = new World()
  const connection: StoreConnection = {
    sync: (request) =>
      Promise.resolve({
        time: Number.NaN,
        results: [],
        blocks: [],
        ...(request.heartbeat && { heartbeat: { nodes: 0, generation: '', cursor: '', blocks: [], hot: [] } }),
      }),
    close: () => Promise.resolve(),
  }
  const throttler = new Throttler({
    policies: [{ limit: 10, interval: 1_000 }],
    clock: world.clock(),
    store: backgroundStore({ kind: 'broken', open: () => connection }),
  })
  let admitted = 0
  for (let i = 0; i < 100; i++) {
    admitted += throttler.check('a').allowed ? 1 : 0
    await world.run(9.9)
  }
  throttler.block('b', '1m')
  await world.run(500)
  expect(admitted).toBe(10)
  expect(throttler.snapshot().nodes).toBe(1)
})
