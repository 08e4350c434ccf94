import { expect, test, vi } from 'vitest'
import type { Receipt } from '../../src/budget/receipt.ts'
import { calendar, fixedWindow, type IntervalOption, type ReserveOptions } from '../../src/index.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene, thrownBy } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

const CELLS = EACH_CELL.filter(({ algorithm, coordination }) => {
  return algorithm.slots === undefined && !(algorithm.name === 'leakyBucket()' && coordination === 'background')
})

/** A process, connected to the store if it has one. */
async function begun(
  { algorithm, coordination }: Pick<(typeof CELLS)[number], 'algorithm' | 'coordination'>,
  interval: IntervalOption,
  limit = 1_000,
  offset = 0,
): Promise<{ it: Scene; node: Node }> {
  const it = scene({ storeOffset: offset })
  const node = it.node({ name: 'tokens', limit, interval, algorithm, coordination } as never, { alone: coordination === 'local', offset })
  node.start()
  await vi.dynamicImportSettled()
  await it.world.run(1_100)
  if (coordination === 'central') await vi.waitFor(() => expect(it.store.deciders).toBe(1))
  return { it, node }
}

async function reserved(it: Scene, node: Node, options: ReserveOptions): Promise<Receipt> {
  let receipt: Receipt | undefined
  const done = node.reserveAsync('k', options).then((one) => {
    receipt = one
  })
  for (let waited = 0; receipt === undefined && waited < 300; waited++) await it.world.run(1)
  await done
  return receipt as unknown as Receipt
}

async function used(it: Scene, node: Node): Promise<number | undefined> {
  const usage = node.usage('k')
  await it.world.run(100)
  return (await usage)[0]?.used
}

const CENTRAL = { algorithm: fixedWindow(), coordination: 'central' } as const

test.each(CELLS)('$name, $coordination: units that have left the count do not count again when their call settles', async (cell) => {
  for (const expire of ['charge', 'refund'] as const) {
    const { it, node } = await begun(cell, '1m')
    const call = await reserved(it, node, { cost: { tokens: 600 }, ttl: '10m', expire })
    if (expire === 'charge') call.used({ tokens: 50 })
    await it.world.run(125_000)
    call.settle({ tokens: 600 })
    await it.world.run(1_000)
    expect(await used(it, node)).toBe(0)
    await it.close()
  }
})

test('so it is after the end of a calendar interval, where only units above the reserved ones count', async () => {
  const aDay = 86_400_000
  const { it, node } = await begun(CENTRAL, calendar('day'), 1_000, aDay - (EPOCH % aDay) - 60_000)
  const options = { cost: { tokens: 300 }, ttl: '20d', expire: 'refund' } as const
  const calls = [await reserved(it, node, options), await reserved(it, node, options)]
  await it.world.run(61_000)
  calls[0]?.settle({ tokens: 300 })
  calls[1]?.settle({ tokens: 310 })
  await it.world.run(1_000)
  expect(await used(it, node)).toBe(10)
  await it.close()
})

test('more calls of a key than the store keeps open are settled exactly, and cancelled ones return', async () => {
  const { it, node } = await begun(CENTRAL, '1h', 13_000)
  const open: Receipt[] = []
  const rejected: Receipt[] = []
  const offer = async (count: number) => {
    for (let i = 0; i < count; i++) {
      void node.reserveAsync('k', { cost: { tokens: 10 } }).then((call) => (call.isOpen ? open : rejected).push(call))
      if (i % 20 === 0) await it.world.run(2)
    }
    await it.world.run(2_000)
  }
  // The second round shows that the first has freed its places in the store, and that rejections take none.
  for (const round of [1, 2]) {
    await offer(1_400)
    expect([open.length, rejected.length]).toEqual(round === 1 ? [1_300, 100] : [1_170, 330])
    for (const [i, call] of open.splice(0).entries()) {
      if (i % 3 === 0) call.cancel()
      else call.settle({ tokens: i % 3 })
      if (i % 20 === 0) await it.world.run(2)
    }
    await it.world.run(5_000)
    expect(await used(it, node)).toBe(round === 1 ? 1_299 : 1_299 + 1_170)
  }
  await it.close()
})

const CUT_OFF = ['leased', 'central'].flatMap((coordination) => {
  return ['charge', 'refund'].flatMap((expire) => [0, 3_000].map((after) => [coordination, expire, after] as const))
})

test.each(CUT_OFF)(
  '%s, %s, %i ms later: what a process knew counts, even if it was cut off until the end had passed',
  async (coordination, expire, after) => {
    const cases: readonly [before: number | undefined, end: (call: Receipt) => void, counted: number][] = [
      [undefined, (call) => call.settle({ tokens: 100 }), 100],
      [50, (call) => call.settle({ tokens: 100 }), 100],
      [150, (call) => call.settle({ tokens: 100 }), 100],
      [50, (call) => call.settle({ tokens: 700 }), 700],
      [50, (call) => call.used({ tokens: 70 }), 70],
      [undefined, (call) => call.cancel(), 0],
      [50, () => {}, 50],
      [undefined, () => {}, expire === 'refund' ? 0 : 600],
    ]
    for (const [before, end, counted] of cases) {
      const it = scene()
      const policy = { name: 'tokens', limit: 10_000, interval: '10h', coordination } as never
      const [cutOff, other] = [it.node(policy), it.node(policy)]
      for (const node of [cutOff, other]) node.start()
      await vi.dynamicImportSettled()
      await it.world.run(3_100)
      if (coordination === 'central') await vi.waitFor(() => expect(it.store.deciders).toBe(2))
      const call = await reserved(it, cutOff, { cost: { tokens: 600 }, ttl: '1m', expire } as never)
      if (before !== undefined) call.used({ tokens: before })
      await it.world.run(3_000)
      it.store.dead.add(cutOff.nodeId)
      await it.world.run(after)
      end(call)
      await it.world.run(90_000)
      ;(await reserved(it, other, { cost: { tokens: 1 } })).cancel()
      it.store.dead.delete(cutOff.nodeId)
      await it.world.run(10_000)
      ;(await reserved(it, cutOff, { cost: { tokens: 1 } })).cancel()
      await it.world.run(3_000)
      expect([await used(it, other), await used(it, cutOff)]).toEqual([counted, counted])
      await it.close()
    }
  },
)

test('a settlement counts once that arrived although its answer was lost, and is repeated after the end', async () => {
  const { it, node } = await begun(CENTRAL, '10h')
  const calls: Receipt[] = []
  for (const expire of ['charge', 'refund'] as const) calls.push(await reserved(it, node, { cost: { tokens: 300 }, ttl: '1m', expire }))
  await it.world.run(3_000)
  it.store.health = 'mute'
  for (const call of calls) call.settle({ tokens: 100 })
  await it.world.run(90_000)
  it.store.health = 'up'
  await it.world.run(10_000)
  expect(await used(it, node)).toBe(200)
  await it.close()
})

const SHARED = EACH_CELL.filter(({ algorithm }) => algorithm.name === fixedWindow().name)

test.each(SHARED)('$coordination: refunded units of an open reservation return once', async (cell) => {
  const settled = (call: Receipt) => call.settle({ tokens: 200 })
  const cases: readonly [back: number | undefined, end: (call: Receipt) => void, counted: number][] = [
    [undefined, settled, 0],
    [undefined, () => {}, 0],
    [undefined, (call) => call.cancel(), 0],
    [100, settled, 200],
    [100, () => {}, 0],
    [100, (call) => call.used({ tokens: 150 }), 150],
    [100, (call) => call.cancel(), 0],
  ]
  for (const [back, end, counted] of cases) {
    const { it, node } = await begun(cell, '1h')
    await reserved(it, node, { cost: { tokens: 300 } })
    const call = await reserved(it, node, { cost: { tokens: 600 }, ttl: '5s', expire: 'refund' })
    node.refund(call, back)
    await it.world.run(50)
    end(call)
    await it.world.run(10_000)
    expect(await used(it, node)).toBe(300 + counted)
    await it.close()
  }
})

test('while the store is down, use is reported again once a second, however many reservations are open', async () => {
  const { it, node } = await begun(CENTRAL, '10h', 100_000)
  const calls: Receipt[] = []
  for (let i = 0; i < 800; i++) {
    void node.reserveAsync(`k${i}`, { cost: { tokens: 10 }, ttl: '5h' }).then((call) => calls.push(call))
    if (i % 20 === 0) await it.world.run(2)
  }
  await it.world.run(2_000)
  it.store.health = 'rejecting'
  const timers = vi.spyOn(node.clock, 'setTimeout')
  for (const call of calls) call.used({ tokens: 3 })
  await it.world.run(10_000)
  expect(calls).toHaveLength(800)
  expect(timers.mock.calls.length).toBeLessThan(200)
  it.store.health = 'up'
  await it.world.run(5_000)
  const reported = it.store.decided.filter(({ request: { questions } }) => questions[0]?.kind === 'use')
  expect(new Set(reported.map(({ request: { questions } }) => questions[0]?.key)).size).toBe(800)
  await it.close()
})

test('numbers that can not be read, or that settle while they are read, end a reservation once', async () => {
  const { it, node } = await begun({ ...CENTRAL, coordination: 'local' }, '1h')
  const unreadable = {
    get tokens(): number {
      throw new Error('unread')
    },
  }
  const first = await reserved(it, node, { cost: { tokens: 100 } })
  expect(() => first.settle(unreadable)).toThrow('unread')
  expect(first.isOpen).toBe(true)
  first.settle({ tokens: 1 })
  const second = await reserved(it, node, { cost: { tokens: 100 } })
  const settling = {
    get tokens(): number {
      second.settle({ tokens: 2 })
      return 90
    },
  }
  second.settle(settling)
  expect(await used(it, node)).toBe(3)
  await it.close()
})

test.each([undefined, 7, null, Symbol('k')])('a key that is no string is named, whatever the options are: %s', async (key) => {
  const { it, node } = await begun({ ...CENTRAL, coordination: 'local' }, '1h')
  const options = { cost: { tokens: 1 }, id: 'a' }
  expect(thrownBy(() => node.reserve(key as never, options)).code).toBe('WEIR_INVALID_KEY')
  await expect(node.reserveAsync(key as never, options)).rejects.toMatchObject({ code: 'WEIR_INVALID_KEY' })
  await it.close()
})

test('a reservation that still waits is no receipt for reserve, even if an update has removed the policy it waits for', async () => {
  const { it, node } = await begun(CENTRAL, '1h')
  it.store.roundTrip = 20
  const options = { cost: { tokens: 10 }, id: 'a' }
  const waiting = node.reserveAsync('k', options)
  node.update([{ name: 'tokens', limit: 1_000, interval: '1h' }] as never)
  expect(thrownBy(() => node.reserve('k', options)).code).toBe('WEIR_ASYNC_POLICY')
  await it.world.run(1_000)
  await waiting
  expect(node.reserve('k', options).allowed).toBe(true)
  await it.close()
})
