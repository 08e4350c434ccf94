import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createGuard, type Guard } from '../../src/http/guard.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { backgroundStore } from '../../src/sync/coordinator.ts'
import type { Store } from '../../src/throttler/coordinator.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'

const bundledReader = { ...fakeReader, bundled: true }
let address = ''
let tests = 0
/** Connections that are open. */
let open = 0

beforeEach(() => {
  vi.stubEnv('NODE_ENV', 'development')
  address = `reloaded ${++tests}`
  open = 0
})

/** A value per evaluation of a module, as redisStore() makes it. */
function newStore(): Store {
  const shared = memoryStore()
  const connect: Store['open'] = (node) => {
    open++
    return shared.open(node)
  }
  return backgroundStore({ kind: 'mine', address, open: connect })
}

/** The code of a module that a hot reload evaluates again. */
async function evaluate(limit: number, options: { name?: string; reader?: typeof fakeReader; store?: Store } = {}) {
  const { name = 'default', reader = bundledReader, store = newStore() } = options
  const guard = createGuard<FakeRequest, readonly []>({ key: 'all', limit, interval: '1h', name, store }, reader)
  onTestFinished(() => guard.throttler.close())
  // Two evaluations are never in one synchronous run.
  await Promise.resolve()
  return guard
}

const remaining = (guard: Guard<FakeRequest, readonly []>) => (guard.check({}) as { remaining: number }).remaining

describe('an adapter of applications that are bundled', () => {
  test('connects at the first request, because a build evaluates modules too', async () => {
    const guard = await evaluate(10)
    expect([guard.throttler.state, open]).toEqual(['idle', 0])
    remaining(guard)
    expect([guard.throttler.state, open]).toEqual(['connecting', 1])
  })

  test('a hot reload keeps the throttler, its counts and its connection, and applies the new rule', async () => {
    const before = await evaluate(10)
    expect([remaining(before), remaining(before)]).toEqual([9, 8])
    const after = await evaluate(20)
    expect(after.throttler).toBe(before.throttler)
    expect(remaining(after)).toBe(17)
    expect(open).toBe(1)
  })

  test.each([
    ['in production', () => evaluate(10), () => vi.stubEnv('NODE_ENV', 'production')],
    ['with another name', () => evaluate(10, { name: 'other' }), () => {}],
    [
      'at another line',
      async () => createGuard<FakeRequest, readonly []>({ key: 'all', limit: 10, interval: '1h', store: newStore() }, bundledReader),
      () => {},
    ],
    ['with an adapter that is not bundled', () => evaluate(10, { reader: fakeReader }), () => {}],
    ['at a store without an address', () => evaluate(10, { store: memoryStore() }), () => {}],
  ])('a throttler made %s is another one', async (_, again, prepare) => {
    const first = await evaluate(10)
    prepare()
    const second = await again()
    onTestFinished(() => second.throttler.close())
    expect(second.throttler).not.toBe(first.throttler)
  })

  test('a closed throttler is not made again', async () => {
    const closed = await evaluate(10)
    remaining(closed)
    await closed.throttler.close()
    expect(remaining(await evaluate(10))).toBe(9)
  })

  test('a new rule that is invalid leaves the old one', async () => {
    const guard = await evaluate(10)
    await expect(evaluate(0.5)).rejects.toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
    expect(remaining(guard)).toBe(9)
  })
})
