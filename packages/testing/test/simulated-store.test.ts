import type { Announcement, Ordinal, StorePolicy, SyncReply, SyncRequest } from '@weir/core/sync'
import { describe, expect, it } from 'vitest'
import {
  manualClock,
  type NetworkOptions,
  NodeClock,
  SeededRandom,
  type SimulatedStoreOptions,
  simulatedStore,
  VirtualTime,
} from '../src/index.ts'

const policy: StorePolicy = { id: 'p', width: 1000, cells: 1, limit: 10, hot: Number.POSITIVE_INFINITY, ttl: 2000 }

function taken(units: number, ordinal = 1_000_800 as Ordinal): SyncRequest {
  return { entries: [{ policy, key: 'key', cells: [{ ordinal, taken: units, given: 0 }] }], blocks: [] }
}

function setUp(network: NetworkOptions = {}, options: Omit<SimulatedStoreOptions, 'time'> = {}) {
  const time = new VirtualTime()
  const store = simulatedStore({ time, network, random: new SeededRandom('test'), ...options })
  const heard: Announcement[] = []
  const clock = new NodeClock(time, { offset: 250 })
  const connection = store.open({ id: 'node', clock, announced: (announcement) => heard.push(announcement) })
  const outcomes: (SyncReply | string)[] = []
  const sync = (request: SyncRequest): void => {
    connection.sync(request).then(
      (reply) => outcomes.push(reply),
      (error: { code: string }) => outcomes.push(`${error.code} at ${time.now}`),
    )
  }
  const total = () => store.total('p', 'key', 1_000_800 as Ordinal)
  return { time, store, clock, connection, heard, outcomes, sync, total }
}

describe('a simulated store', () => {
  it('is in the time of a clock, not in a clock', () => {
    for (const wrong of [undefined, {}, { time: manualClock() }, { clock: manualClock() }])
      expect(() => simulatedStore(wrong as never)).toThrow(/^Option "time" is .* clock\.time of clock = manualClock\(\)/)
  })

  it('answers after a round trip, with its own time from the middle of it', async () => {
    const { time, sync, outcomes } = setUp({ latency: 2 })
    sync(taken(3))
    await time.runUntil(3.9)
    expect(outcomes).toEqual([])
    await time.runUntil(4)
    expect(outcomes).toMatchObject([{ time: 1_000_800_002, results: [{ cells: [{ taken: 3 }] }] }])
  })

  it('without a clock of its own hands back what the caller believes', async () => {
    const { time, sync, outcomes } = setUp({ latency: 2 }, { clock: 'caller' })
    sync(taken(3))
    await time.runUntil(4)
    expect(outcomes).toMatchObject([{ time: 1_000_800_252 }])
  })

  it('takes a message as it was when it was sent', async () => {
    const { time, sync, total } = setUp()
    const cell = { ordinal: 1_000_800 as Ordinal, taken: 1, given: 0 }
    sync({ entries: [{ policy, key: 'key', cells: [cell] }], blocks: [] })
    cell.taken = 9
    await time.runUntil(1)
    expect(total()).toBe(1)
  })

  it('announces to every node, a latency later', async () => {
    const { time, sync, heard } = setUp({ latency: 1, announcementLatency: 3 })
    sync(taken(10))
    await time.runUntil(3.9)
    expect(heard).toEqual([])
    await time.runUntil(4)
    expect(heard).toMatchObject([{ type: 'total', key: 'key', cells: [{ taken: 10 }] }])
  })

  it('counts a request whose reply was lost, and the caller learns of it by its storeTimeout', async () => {
    const { time, store, sync, outcomes, total } = setUp({}, { storeTimeout: 50 })
    sync(taken(4))
    time.at(0.7, () => store.partition('node', true))
    await time.runUntil(100)
    expect(outcomes).toEqual(['WEIR_STORE_TIMEOUT at 50'])
    expect(total()).toBe(4)
  })

  it('loses messages by chance', async () => {
    const { time, store, sync, outcomes } = setUp({ loss: 0.5 }, { storeTimeout: 50 })
    for (let count = 0; count < 200; count++) sync(taken(1))
    await time.runUntil(100)
    const lost = outcomes.filter((outcome) => typeof outcome === 'string').length
    // A request or its reply is lost: three of four.
    expect(lost).toBeGreaterThan(120)
    expect(lost).toBeLessThan(180)
    expect(store.statistics.failures).toBe(lost)
  })

  it('delivers in order unless messages stray', async () => {
    const orderOf = async (network: NetworkOptions): Promise<number[]> => {
      const { time, connection } = setUp({ latency: (random) => random.next() * 10, ...network })
      const order: number[] = []
      for (let count = 0; count < 50; count++) connection.sync(taken(count)).then(() => order.push(count))
      await time.runUntil(200)
      return order
    }
    const sorted = Array.from({ length: 50 }, (_, index) => index)
    expect(await orderOf({})).toEqual(sorted)
    const strayed = await orderOf({ reordering: 0.3 })
    expect(strayed).not.toEqual(sorted)
    expect(strayed.sort((one, other) => one - other)).toEqual(sorted)
  })

  it('handles a doubled request twice and answers once', async () => {
    const { time, sync, outcomes, total, heard } = setUp({ duplication: 1 })
    sync(taken(10))
    await time.runUntil(200)
    expect(outcomes).toHaveLength(1)
    expect(total()).toBe(10)
    expect(heard).toHaveLength(2)
  })

  it('that rejects is known to be away after a round trip', async () => {
    const { time, store, sync, outcomes, total } = setUp()
    store.fail('reject')
    sync(taken(5))
    await time.runUntil(1)
    expect(outcomes).toEqual(['WEIR_STORE_UNAVAILABLE at 1'])
    store.restore()
    sync(taken(5))
    await time.runUntil(2)
    expect(total()).toBe(5)
  })

  it('that hung does late what it was asked', async () => {
    const { time, store, sync, outcomes, total } = setUp({}, { storeTimeout: 50 })
    store.fail('hang')
    sync(taken(5))
    await time.runUntil(100)
    expect(outcomes).toEqual(['WEIR_STORE_TIMEOUT at 50'])
    store.restore()
    expect(total()).toBe(5)
  })

  it('answers late when it is slow', async () => {
    const { time, store, sync, outcomes } = setUp()
    store.slow(30)
    sync(taken(5))
    await time.runUntil(30.9)
    expect(outcomes).toEqual([])
    await time.runUntil(31)
    expect(outcomes).toHaveLength(1)
  })

  it('keeps silent on demand', async () => {
    const { time, store, sync, heard } = setUp()
    store.silence(true)
    sync(taken(10))
    await time.runUntil(10)
    expect(heard).toEqual([])
  })

  it('forgets everything on demand, and shows it by its generation', async () => {
    const { time, store, connection, total } = setUp()
    const generation = async () => {
      const reply = connection.sync({ ...taken(1), heartbeat: { ttl: 1000, cursor: undefined, policies: [policy] } })
      await time.runUntil(time.now + 1)
      return (await reply).heartbeat?.generation
    }
    const before = await generation()
    store.lose()
    expect(total()).toBe(0)
    expect(await generation()).not.toBe(before)
  })

  it('says nothing to a node that is gone, and lets nobody send on a closed connection', async () => {
    const { time, store, connection, sync, heard, clock } = setUp()
    const other = store.open({ id: 'other', clock, announced: () => {} })
    store.sever('node')
    other.sync(taken(10))
    await time.runUntil(5)
    expect(heard).toEqual([])
    await connection.close()
    sync(taken(1))
    await expect(connection.sync(taken(1))).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
  })

  it('lets messages wait while a node is stalled', async () => {
    const { time, clock, sync, outcomes } = setUp()
    sync(taken(1))
    clock.stall(40)
    await time.runUntil(39)
    expect(outcomes).toEqual([])
    await time.runUntil(40)
    expect(outcomes).toHaveLength(1)
  })
})
