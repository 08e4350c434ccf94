import { afterEach, beforeEach, expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import type { MeetingPoint, StoreConnection, StoreNode, SyncReply, SyncRequest } from '../../src/store/contract.ts'
import { backgroundStore } from '../../src/sync/coordinator.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { EPOCH, World } from '../support/world.ts'

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
  ['rejects with what throws when it is shown', () => Promise.reject(Object.create(null))],
  ['rejects with an error without a readable message', () => Promise.reject(unreadable())],
  ['rejects with a proxy that is revoked', () => Promise.reject(revoked())],
  ['answers a proxy that is revoked', () => revoked()],
  ['answers with a time that no clock shows', () => Promise.resolve({ time: 1e300, results: [], blocks: [] })],
  ['answers with a time that is none', () => Promise.resolve({ time: '0', results: [], blocks: [] })],
  [
    'is a thenable that throws',
    () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      then: () => {
        throw new Error('broken')
      },
    }),
  ],
]

function unreadable(): Error {
  return Object.defineProperties(new Error('x'), {
    message: {
      get: () => {
        throw new Error('no')
      },
    },
    code: {
      get: () => {
        throw new Error('no')
      },
    },
  })
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

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
  expect(throttler.state).toBe('storeDown')
  expect(snapshot(throttler).sync.failures).toBeGreaterThan(5)
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
  let allowed = 0
  for (let i = 0; i < 100; i++) {
    allowed += throttler.check('a').allowed ? 1 : 0
    await world.run(9.9)
  }
  throttler.block('b', '1m')
  await world.run(500)
  expect(allowed).toBe(10)
  expect(snapshot(throttler).nodes).toBe(1)
})

const closed: [string, unknown][] = [
  ['throws', () => 0],
  ['is none', undefined],
  ['never settles', () => new Promise(() => {})],
  ['rejects', () => Promise.reject(undefined)],
]
const opened: [string, () => unknown][] = [
  [
    'throws',
    () => {
      throw new Error('broken')
    },
  ],
  ['throws nothing', () => thrown(undefined)],
  ['returns nothing', () => undefined],
  ['returns a number', () => 1],
  ['returns a promise', () => Promise.resolve()],
  ['returns a connection without a sync', () => ({ close: () => Promise.resolve() })],
  ['returns what is no connection when it is looked at', () => revoked()],
]

function thrown(value: unknown): never {
  throw value
}

test.each(opened)('a store whose open %s counts as one that is away', async (_, open) => {
  const world = new World()
  const throttler = new Throttler({
    policies: [{ limit: 10, interval: 60_000 }],
    clock: world.clock(),
    store: backgroundStore({ kind: 'broken', open } as unknown as MeetingPoint),
  })
  throttler.on('warning', () => {})
  expect(throttler.check('a').allowed).toBe(true)
  await world.run(1_000)
  expect(throttler.state).toBe('storeDown')
  expect(offered(throttler, 20)).toBe(9)
  const closing = throttler.close()
  await world.run(2_000)
  await closing
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled.splice(0)).toEqual([])
})

test.each(closed)('a throttler closes although the close of its connection %s', async (_, close) => {
  const world = new World()
  const connection = { sync: (request: SyncRequest) => honest(world, request), close }
  const throttler = new Throttler({
    policies: [{ limit: 10, interval: 1_000 }],
    clock: world.clock(),
    store: backgroundStore({ kind: 'broken', open: () => connection as StoreConnection }),
  })
  throttler.check('a')
  await world.run(500)
  expect(throttler.state).toBe('synced')
  let done = false
  const closing = throttler.close().then(() => {
    done = true
  })
  await world.run(2_000)
  expect(done).toBe(true)
  await closing
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled.splice(0)).toEqual([])
})

test('a store that never answers is given up, and found again when it does', async () => {
  const world = new World()
  let silent = true
  let asked = 0
  const connection: StoreConnection = {
    sync: (request) => {
      asked++
      return silent ? new Promise(() => {}) : honest(world, request)
    },
    close: () => Promise.resolve(),
  }
  const throttler = new Throttler({
    policies: [{ limit: 10, interval: 600_000 }],
    clock: world.clock(),
    store: backgroundStore({ kind: 'broken', open: () => connection }),
  })
  const failures: unknown[] = []
  throttler.on('storeDown', ({ cause }) => failures.push(cause))
  expect(offered(throttler, 5)).toBe(5)
  await world.run(62_000)
  expect(throttler.state).toBe('storeDown')
  expect(failures).toMatchObject([{ code: 'WEIR_STORE_TIMEOUT' }])
  await world.run(300_000)
  // Probes don't wait for answers, but become rare.
  expect(asked).toBeLessThan(150)
  silent = false
  await world.run(62_000)
  expect(throttler.state).toBe('synced')
  expect(offered(throttler, 10)).toBe(5)
  const closing = throttler.close()
  await world.run(2_000)
  await closing
})

test('announcements may come while the store is opened, asked or closed, and say anything', async () => {
  const world = new World()
  let announced: ((value: unknown) => void) | undefined
  const good = (key: string, taken: number) => ({
    type: 'total',
    policyId: throttler.policies[0]?.id,
    key,
    cells: Object.freeze([{ ordinal: Math.floor(EPOCH / 60_000), taken, given: 0 }]),
  })
  const say = (): void => {
    announced?.(good('full', 10))
    for (const value of [undefined, null, 1, 'x', [], {}, revoked(), unreadable(), { type: 'total' }, { type: 'block', policyId: 1 }])
      announced?.(value)
    announced?.({ ...good('odd', 10), cells: [{ ordinal: Math.floor(EPOCH / 60_000), taken: Number.NaN, given: 0 }] })
    announced?.({ type: 'block', policyId: throttler.policies[0]?.id, key: 'odd', remaining: Number.POSITIVE_INFINITY })
    announced?.({ type: 'block', policyId: throttler.policies[0]?.id, key: 'x'.repeat(100_000), remaining: 1_000 })
  }
  const store = backgroundStore({
    kind: 'early',
    open(node: StoreNode) {
      announced = node.announced as (value: unknown) => void
      say()
      return {
        sync: (request: SyncRequest) => {
          say()
          return honest(world, request)
        },
        close: () => {
          say()
          return Promise.resolve()
        },
      }
    },
  })
  const throttler: Throttler = new Throttler({ policies: [{ name: 'p', limit: 10, interval: 60_000 }], clock: world.clock(), store })
  const warnings: unknown[] = []
  throttler.on('warning', ({ error }) => warnings.push(error))
  throttler.start()
  await world.run(100)
  expect(throttler.check('full').allowed).toBe(false)
  expect(offered(throttler, 20, 'odd')).toBe(10)
  await world.run(100)
  expect(snapshot(throttler).policies[0]?.keys).toBe(2)
  const closing = throttler.close()
  await world.run(2_000)
  await closing
  say()
  // One warning about an announcement without a policy, and one about an announcement for this policy.
  expect(warnings).toHaveLength(2)
  expect(unhandled.splice(0)).toEqual([])
})

function offered(throttler: Throttler, count: number, key = 'a'): number {
  let allowed = 0
  for (let i = 0; i < count; i++) if (throttler.check(key).allowed) allowed++
  return allowed
}

/** The reply of a store with only one process. */
function honest(world: World, { entries, blocks, heartbeat }: SyncRequest): Promise<SyncReply> {
  return Promise.resolve({
    time: EPOCH + world.time,
    results: entries.map(({ cells }) => ({ cells, blocked: 0 })),
    blocks: blocks.map(({ remaining }) => remaining),
    ...(heartbeat && { heartbeat: { nodes: 1, generation: '1', cursor: '1', blocks: [], hot: [] } }),
  })
}
