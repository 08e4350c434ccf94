import { expect, test, vi } from 'vitest'
import type { Receipt } from '../../src/budget/receipt.ts'
import { calendar, fixedWindow, type IntervalOption, type ReserveOptions } from '../../src/index.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'

// A leaky bucket that delays requests in the background has no capacity for many units at once.
const CELLS = EACH_CELL.filter(({ algorithm, coordination }) => {
  return algorithm.slots === undefined && !(algorithm.name === 'leakyBucket()' && coordination === 'background')
})

/** Reserves, and lets the time pass that the store needs. */
async function reserved(it: Scene, node: Node, key: string, options: ReserveOptions): Promise<Receipt> {
  let receipt: Receipt | undefined
  const done = node.reserveAsync(key, options).then((one) => {
    receipt = one
  })
  for (let waited = 0; receipt === undefined && waited < 300; waited++) await it.world.run(1)
  await done
  return receipt as unknown as Receipt
}

/** A process, connected to the store if it has one, in the middle of an interval. */
async function begun(
  cell: Pick<(typeof CELLS)[number], 'algorithm' | 'coordination'>,
  count = 1,
  interval: IntervalOption = '1h',
): Promise<{ it: Scene; nodes: Node[] }> {
  const { algorithm, coordination } = cell
  const it = scene()
  const alone = coordination === 'local'
  const policy = { name: 'tokens', limit: 1_000, interval, algorithm, coordination } as never
  const nodes = Array.from({ length: count }, () => it.node(policy, { alone }))
  for (const node of nodes) node.start()
  await vi.dynamicImportSettled()
  await it.world.run(1_100)
  if (coordination === 'central') await vi.waitFor(() => expect(it.store.deciders).toBe(count))
  return { it, nodes }
}

/** Units that the store's processes together have left, as the node's next reservation shows. */
async function left(it: Scene, node: Node): Promise<number> {
  const { limit, remaining } = await reserved(it, node, 'k', { cost: { tokens: 1 } }).then((receipt) => {
    const { limit, remaining, allowed } = receipt
    receipt.cancel()
    return { limit, remaining: remaining + (allowed ? 1 : 0) }
  })
  await it.world.run(10)
  return Math.round(limit - remaining)
}

test.each(CELLS)('$name, $coordination: a reservation counts in full until it is settled, and then by its real use', async (cell) => {
  const { it, nodes } = await begun(cell)
  const [node] = nodes as [Node]
  const call = await reserved(it, node, 'k', { cost: { tokens: 600 } })
  expect(call).toMatchObject({ allowed: true, isOpen: true, cost: 600 })
  expect((await reserved(it, node, 'k', { cost: { tokens: 500 } })).allowed).toBe(false)
  call.settle({ tokens: 100 })
  expect(call.isOpen).toBe(false)
  call.settle({ tokens: 900 })
  call.cancel()
  await it.world.run(10)
  expect(await left(it, node)).toBe(100)
  const more = await reserved(it, node, 'k', { cost: { tokens: 500 } })
  more.settle({ tokens: 880 })
  await it.world.run(10)
  expect(await left(it, node)).toBe(980)
  await it.close()
})

test.each(CELLS)('$name, $coordination: without a number it counts the last use that was reported, or else all units', async (cell) => {
  const { it, nodes } = await begun(cell)
  const [node] = nodes as [Node]
  const first = await reserved(it, node, 'k', { cost: { tokens: 300 } })
  first.used({ tokens: 20 })
  first.used({ tokens: 70 })
  first.used({ tokens: 50 })
  await it.world.run(10)
  first.settle()
  const second = await reserved(it, node, 'k', { cost: { tokens: 100 } })
  second[Symbol.dispose]()
  const third = await reserved(it, node, 'k', { cost: { tokens: 200 } })
  third.cancel()
  await it.world.run(10)
  expect(await left(it, node)).toBe(170)
  await it.close()
})

test.each(CELLS)('$name, $coordination: it settles itself after its ttl, by the reported use', async (cell) => {
  const { it, nodes } = await begun(cell)
  const [node] = nodes as [Node]
  const expired: unknown[] = []
  node.on('reservationExpired', (event) => expired.push(event))
  const [full, used, back] = [
    await reserved(it, node, 'k', { cost: { tokens: 100 }, ttl: '5s' }),
    await reserved(it, node, 'k', { cost: { tokens: 200 }, ttl: '5s', expire: 'refund' }),
    await reserved(it, node, 'k', { cost: { tokens: 400 }, ttl: '5s', expire: 'refund' }),
  ]
  used?.used({ tokens: 10 })
  await it.world.run(4_900)
  expect([full, used, back].map((one) => one?.isOpen)).toEqual([true, true, true])
  await it.world.run(300)
  expect([full, used, back].map((one) => one?.isOpen)).toEqual([false, false, false])
  expect(expired).toHaveLength(3)
  expect(expired[1]).toEqual({ policy: 'tokens', key: 'k', reserved: 200, counted: 10 })
  await it.world.run(1_500)
  // Buckets drain by less than a few units meanwhile.
  const counted = await left(it, node)
  expect(counted).toBeLessThanOrEqual(110)
  expect(counted).toBeGreaterThan(105)
  await it.close()
})

test.each(CELLS)(
  '$name, $coordination: a call that ends after its interval counts only its units above the reserved ones',
  async (cell) => {
    const { it, nodes } = await begun(cell, 1, '10s')
    const [node] = nodes as [Node]
    const calls: Receipt[] = []
    for (const expire of ['charge', 'refund'] as const) {
      for (const reported of [undefined, 30]) {
        const call = await reserved(it, node, 'k', { cost: { tokens: 100 }, ttl: '50s', expire })
        if (reported !== undefined) call.used({ tokens: reported })
        calls.push(call)
      }
    }
    await it.world.run(25_000)
    for (const call of calls) call.settle({ tokens: 100 })
    const more = await reserved(it, node, 'k', { cost: { tokens: 100 }, ttl: '50s' })
    await it.world.run(10)
    // Buckets drain by a few units meanwhile.
    const open = await left(it, node)
    expect(open).toBeLessThanOrEqual(100)
    expect(open).toBeGreaterThan(90)
    await it.world.run(25_000)
    more.settle({ tokens: 300 })
    await it.world.run(10)
    const debt = await left(it, node)
    expect(debt).toBeLessThanOrEqual(200)
    expect(debt).toBeGreaterThan(190)
    await it.close()
  },
)

const HOURLY = CELLS.filter(({ coordination }) => coordination === 'central' || coordination === 'leased').map((cell) => {
  return { ...cell, every: 'hour', interval: '1h' as IntervalOption }
})
const MONTHLY = HOURLY.filter(({ algorithm }) => algorithm.name === fixedWindow().name).map((cell) => {
  return { ...cell, every: 'month', interval: calendar('month') }
})

test.each([...HOURLY, ...MONTHLY])(
  '$name each $every, $coordination: the store settles the reservations of a process that died',
  async (cell) => {
    const { it, nodes } = await begun(cell, 2, cell.interval)
    const [dead, alive] = nodes as [Node, Node]
    await reserved(it, dead, 'k', { cost: { tokens: 100 }, ttl: '5s' })
    const used = await reserved(it, dead, 'k', { cost: { tokens: 200 }, ttl: '5s' })
    const back = await reserved(it, dead, 'k', { cost: { tokens: 400 }, ttl: '5s', expire: 'refund' })
    used.used({ tokens: 30 })
    expect(back.allowed).toBe(true)
    await it.world.run(1_500)
    it.store.dead.add(dead.nodeId)
    await it.world.run(2_000)
    expect((await reserved(it, alive, 'k', { cost: { tokens: 400 } })).allowed).toBe(false)
    await it.world.run(6_000)
    const usage = alive.usage('k')
    await it.world.run(100)
    const [{ used: counted = 0 } = {}] = await usage
    expect(Math.round(counted)).toBeLessThanOrEqual(130)
    expect(Math.round(counted)).toBeGreaterThanOrEqual(126)
    // A killed process keeps the quota that it took ahead and did not use.
    const most = cell.coordination === 'leased' ? 500 : 860
    expect((await reserved(it, alive, 'k', { cost: { tokens: most } })).allowed).toBe(true)
    expect((await reserved(it, alive, 'k', { cost: { tokens: 1_000 - most - 100 } })).allowed).toBe(false)
  },
)
