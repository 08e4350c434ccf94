import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { createGuard } from '../../src/http/guard.ts'
import { nodeReader } from '../../src/http/request/node-reader.ts'
import { paths } from '../../src/http/request/paths.ts'
import { snapshot } from '../../src/inspect/snapshot.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { offer, scene } from '../support/nodes.ts'
import { standingStill } from '../support/standing-still.ts'

const LIMIT = 100
const INTERVAL = 60_000

function frozenScene() {
  const { world, store, node, close } = scene()
  store.roundTrip = 2
  const still = standingStill(world, store)
  const events: string[] = []
  const made: { close(): Promise<void> }[] = []
  return {
    world,
    store,
    still,
    node,
    events,
    /** A process that stands still now and then. */
    throttler(policy: object = {}, ...others: readonly PolicyOptions[]) {
      const throttler = createThrottler({
        policies: [{ limit: LIMIT, interval: INTERVAL, key: 'ip', ...policy }, ...others],
        clock: still.clock,
        store: still.store,
      })
      made.push(throttler)
      for (const name of ['storeDown', 'storeUp'] as const) throttler.on(name, () => void events.push(name))
      return throttler.start()
    },
    async close() {
      const closing = Promise.all(made.map((one) => one.close()))
      await close()
      for (let i = 0; i < 100; i++) await world.run(20)
      await closing
    },
  }
}

describe('after a process has stood still', () => {
  test.each([1_500, 30_000, 70_000, 600_000])('for %s ms, a reply that waits is read, and there is no outage', async (length) => {
    const { world, still, throttler, events, close } = frozenScene()
    const one = throttler()
    await world.run(500)
    one.check('a')
    // The sync is sent, and its reply comes while the process stands still.
    await world.settle()
    still.freeze()
    await world.run(length)
    await still.thaw()
    await world.run(100)
    expect(events).toEqual([])
    expect(one.state).toBe('synced')
    expect(snapshot(one).sync.failures).toBe(0)
    // The time of the freeze is no round trip.
    expect(snapshot(one).sync.clockUncertaintyMs).toBeLessThan(10)
    await close()
  })

  test('a connection that died meanwhile is no outage if the next one works, and nothing is lost', async () => {
    const { world, store, still, throttler, node, events, close } = frozenScene()
    const one = throttler()
    await world.run(500)
    await world.settle()
    still.freeze()
    await world.run(5_000)
    still.cut()
    offer(one, 'a', 3)
    await still.thaw()
    await world.run(60)
    expect(snapshot(one).sync.failures).toBeGreaterThan(0)
    still.connected()
    await world.run(200)
    expect(events).toEqual([])
    expect((await Promise.all([one.flush(), world.run(100)]))[0]).toBe(true)
    const other = node({ limit: LIMIT, interval: INTERVAL })
    other.start()
    await world.run(100)
    expect((await Promise.all([other.usage('a'), world.run(2_000)]))[0]).toMatchObject([{ used: 3, source: 'store' }])
    expect(store.health).toBe('up')
    await close()
  })

  test('also if the monotonic clock stood still, as on a suspended machine', async () => {
    const { world, still, throttler, events, close } = frozenScene()
    const one = throttler()
    await world.run(500)
    still.clock.offset += 3_600_000
    still.cut()
    while (snapshot(one).sync.failures === 0) await world.run(10)
    await world.run(300)
    still.connected()
    await world.run(300)
    expect(events).toEqual([])
    await close()
  })

  test('an answer that never comes is given up, even if the process stands still again and again', async () => {
    const { world, store, still, throttler, close } = frozenScene()
    const one = throttler()
    await world.run(3_000)
    store.storeTimeout = Number.POSITIVE_INFINITY
    store.health = 'hanging'
    await world.run(1_500)
    for (let i = 0; i < 5; i++) {
      still.freeze()
      await world.run(25_000)
      await still.thaw()
      await world.run(5)
    }
    expect(snapshot(one).sync.failuresByCause.timeout).toBeGreaterThan(0)
    store.health = 'up'
    await close()
  })

  test('a store that is really down is reported within a second', async () => {
    const { world, still, throttler, events, close } = frozenScene()
    throttler()
    await world.run(500)
    still.freeze()
    await world.run(5_000)
    still.cut()
    await still.thaw()
    await world.run(1_000)
    expect(events).toEqual(['storeDown'])
    still.connected()
    await world.run(1_000)
    expect(events).toEqual(['storeDown', 'storeUp'])
    await close()
  })

  test('a store that is really down is reported at the fourth request, even if the process always stands still soon after it', async () => {
    const { world, still, throttler, events, close } = frozenScene()
    const one = throttler()
    await world.run(500)
    still.cut()
    const states: string[] = []
    for (let i = 0; i < 4; i++) {
      await world.run(100)
      still.freeze()
      await world.run(2_000)
      await still.thaw()
      one.check('a')
      await world.run(20)
      states.push(one.state)
    }
    expect(states).toEqual(['synced', 'synced', 'synced', 'storeDown'])
    still.connected()
    await world.run(1_000)
    expect(events).toEqual(['storeDown', 'storeUp'])
    await close()
  })
})

describe.each([
  ['fixedWindow', fixedWindow()],
  ['slidingWindow', slidingWindow()],
  ['tokenBucket', tokenBucket({ burst: LIMIT })],
])('%s, with afterFreeze', (_name, algorithm) => {
  const request = { method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '192.0.2.1' } } as IncomingMessage

  async function afterFreeze(
    afterFreeze: 'sync' | 'continue' | undefined,
    length: number,
    policy: object = {},
    ...others: readonly PolicyOptions[]
  ) {
    const { world, still, node, throttler, store, close } = frozenScene()
    const guard = createGuard(
      { throttler: throttler({ algorithm, ...policy }, ...others), ...(afterFreeze && { afterFreeze }) },
      nodeReader,
    )
    const other = node({ limit: LIMIT, interval: INTERVAL, algorithm, key: 'ip' } as never)
    other.start()
    await world.run(1_500)
    await guard.check(request)
    await world.run(300)
    store.announces = false
    still.freeze()
    await world.run(length / 2)
    expect(offer(other, '192.0.2.1', 2 * LIMIT)).toBeGreaterThanOrEqual(LIMIT - 1)
    await world.run(length / 2)
    await still.thaw()
    return { world, store, guard, close }
  }

  test("'sync' decides by the counts of the others", async () => {
    const { world, guard, close } = await afterFreeze('sync', 1_000)
    const checked = guard.check(request)
    expect(checked).toBeInstanceOf(Promise)
    const [decision] = await Promise.all([checked, world.run(20)])
    expect(decision).toMatchObject({ allowed: false })
    // The next ones don't wait, as long as these counts are not old.
    expect(guard.check(request)).toMatchObject({ allowed: false })
    await close()
  })

  test("'sync' decides so after a request of a policy that needs no counts", async () => {
    const local = { name: 'local', limit: LIMIT, interval: INTERVAL, key: 'ip', coordination: 'local', match: paths('/local') } as const
    const { world, guard, close } = await afterFreeze('sync', 1_000, { match: paths('/') }, local)
    await Promise.all([guard.check({ ...request, url: '/local' } as IncomingMessage), world.run(20)])
    const [decision] = await Promise.all([guard.check(request), world.run(20)])
    expect(decision).toMatchObject({ allowed: false })
    await close()
  })

  test("'sync' waits for at most 50 ms", async () => {
    const { world, store, guard, close } = await afterFreeze('sync', 3_000)
    store.health = 'hanging'
    let decided = false
    const checked = Promise.resolve(guard.check(request)).then((decision) => {
      decided = true
      return decision
    })
    await world.run(40)
    expect(decided).toBe(false)
    await world.run(20)
    expect(decided).toBe(true)
    expect(await checked).toMatchObject({ parts: [{}] })
    store.health = 'up'
    await close()
  })

  test.each(['continue', undefined] as const)('%s decides immediately', async (given) => {
    const { guard, close } = await afterFreeze(given, 1_000)
    expect(guard.check(request)).not.toBeInstanceOf(Promise)
    await close()
  })
})

describe('with quota taken ahead', () => {
  /** Two processes with a limit of 20. The first one uses a unit after each of these standstills. */
  async function leased({ standstills, length }: { readonly standstills: number; readonly length: number }) {
    const { world, store, still, throttler, node, close } = frozenScene()
    const rule = { limit: 20, interval: INTERVAL, coordination: 'leased' } as const
    const one = throttler(rule)
    const other = node(rule)
    other.start()
    await world.run(500)
    const decide = async (at: typeof one) => (await Promise.all([at.checkAsync('a'), world.run(60)]))[0].allowed
    for (let i = 0; i < standstills; i++) {
      still.freeze()
      await world.run(length)
      await still.thaw()
      expect(await decide(one)).toBe(true)
    }
    return { world, store, still, one, other, decide, close }
  }

  test('a process that stands still now and then takes only the units that it uses', async () => {
    const { world, still, one, other, decide, close } = await leased({ standstills: 3, length: 5_000 })
    still.freeze()
    let allowed = 0
    for (let i = 0; i < 20; i++) if (await decide(other)) allowed++
    expect(allowed).toBe(17)
    await still.thaw()
    // The store has the uses of all units, so none is waited for.
    let rejected = false
    void one.checkAsync('a').then((decision) => {
      rejected = !decision.allowed
    })
    await world.run(3)
    expect(rejected).toBe(true)
    await close()
  })

  test('a process decides by the store after a short standstill too', async () => {
    const { world, store, still, one, other, decide, close } = await leased({ standstills: 2, length: 2_000 })
    store.announces = false
    for (let i = 0; i < 18; i++) expect(await decide(other)).toBe(true)
    store.roundTrip = 310
    void one.checkAsync('b')
    await world.settle()
    still.freeze()
    await world.run(300)
    await still.thaw()
    store.roundTrip = 2
    // The store has no units left. By its own counts the process would still use some.
    expect(await decide(one)).toBe(false)
    await close()
  })
})

test('a process that did not stand still decides immediately', async () => {
  const { world, throttler, close } = frozenScene()
  const guard = createGuard({ throttler: throttler(), afterFreeze: 'sync' }, nodeReader)
  const request = { method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '192.0.2.1' } } as never
  for (let i = 0; i < 50; i++) {
    await world.run(197)
    expect(guard.check(request)).not.toBeInstanceOf(Promise)
  }
  await close()
})

test.each(['later', true, null, 50])('afterFreeze: %s is rejected', (afterFreeze) => {
  expect(() => createGuard({ key: 'ip', limit: 1, interval: '1m', afterFreeze: afterFreeze as never }, nodeReader)).toThrow(
    expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('afterFreeze') }),
  )
})
