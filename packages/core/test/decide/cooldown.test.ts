import { describe, expect, test } from 'vitest'
import { createThrottler } from '../../src/index.ts'
import { ManualTime } from '../http/manual-time.ts'
import { type Node, offer, type Scene, scene } from '../support/nodes.ts'

/** When each process opens the key again, to the millisecond. */
async function opensAt({ world }: Scene, nodes: Node[], until: number): Promise<(number | undefined)[]> {
  const opened: (number | undefined)[] = nodes.map(() => undefined)
  while (world.time < until) {
    await world.run(1)
    nodes.forEach((node, i) => {
      opened[i] ??= node.peek('a').allowed ? world.time : undefined
    })
  }
  return opened
}

describe('a rejected request blocks its key until the end of the interval or of the cooldown, whichever is later', () => {
  test.each([
    [0, 1_000],
    [100, 1_000],
    [500, 1_000],
    [501, 1_001],
    [2_500, 3_000],
  ])('a cooldown of %d ms, limit first exceeded 500 ms after the start: open at %d ms', async (cooldown, open) => {
    const here = scene()
    const throttler = here.node({ limit: 5, interval: 1_000, cooldown })
    await here.world.runTo(500)
    offer(throttler, 'a', 6)
    expect(throttler.check('a').reason).toBe(cooldown === 0 ? 'limit' : 'cooldown')
    expect(throttler.check('a').retryAfterMs).toBe(open - 500)
    expect(await opensAt(here, [throttler], 4_000)).toEqual([open])
  })

  test('requests that are rejected meanwhile do not make it longer', async () => {
    const here = scene()
    const throttler = here.node({ limit: 5, interval: 1_000, cooldown: 1_500 })
    offer(throttler, 'a', 6)
    while (here.world.time < 1_400) {
      await here.world.run(100)
      expect(throttler.check('a').allowed).toBe(false)
    }
    await here.world.runTo(1_500)
    expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 4 })
  })
})

test('all nodes are open again at the same time, also one that heard of the block last', async () => {
  const here = scene()
  here.store.roundTrip = 4
  const nodes = [0, 1, 2].map(() => here.node({ limit: 30, interval: 1_000, cooldown: 2_000 }))
  for (const node of nodes) node.start()
  await here.world.runTo(300)
  for (let i = 0; i < 12; i++) {
    for (const node of nodes.slice(0, 2)) offer(node, 'a', 4)
    await here.world.run(5)
  }
  expect(nodes.map((node) => node.peek('a').reason)).toEqual(['cooldown', 'cooldown', 'cooldown'])
  const opened = await opensAt(here, nodes, 4_000)
  const first = Math.min(...opened.map((at) => at ?? 0))
  expect(first).toBeGreaterThan(2_300)
  for (const at of opened) expect(at).toBeLessThanOrEqual(first + 4)
  await here.close()
})

test('two nodes that find the limit exceeded at nearly the same time hold the block of the first', async () => {
  const here = scene()
  here.store.announces = false
  here.store.roundTrip = 20
  const nodes = [0, 1].map(() => here.node({ limit: 10, interval: 1_000, cooldown: 2_000 }))
  for (const node of nodes) node.start()
  await here.world.runTo(100)
  offer(nodes[0] as never, 'a', 11)
  await here.world.runTo(115)
  offer(nodes[1] as never, 'a', 11)
  const [first, second] = await opensAt(here, nodes, 4_000)
  expect(first).toBeGreaterThanOrEqual(2_100)
  expect(Math.abs((first as number) - (second as number))).toBeLessThanOrEqual(20)
  await here.close()
})

test.each([
  ['80 ms', 80],
  ['a quarter of a second, longer than the announcement takes', 250],
])('a store that is slow for once (%s) does not move the end of a cooldown that a client was told', async (_name, roundTrip) => {
  const here = scene()
  const { store, world } = here
  store.roundTrip = 2
  const throttler = here.node({ limit: 5, interval: 1_000, cooldown: 2_000 })
  throttler.start()
  await world.runTo(1_500)
  store.roundTrip = roundTrip
  offer(throttler, 'a', 6)
  expect(throttler.check('a').retryAfterMs).toBe(2_000)
  // The following heartbeats bring the store's end with little delay.
  await world.run(roundTrip)
  store.roundTrip = 2
  expect(await opensAt(here, [throttler], 5_000)).toEqual([3_500])
  await here.close()
})

test('blocked and unblocked are reported once each, with the cause', async () => {
  const here = scene()
  const [one, two] = [0, 1].map(() => here.node({ name: 'p', limit: 5, interval: 1_000, cooldown: 2_000 })) as [Node, Node]
  const events: unknown[] = []
  for (const [name, node] of [
    ['one', one],
    ['two', two],
  ] as const) {
    node.start()
    node.on('blocked', (event) => events.push([name, 'blocked', event]))
    node.on('unblocked', (event) => events.push([name, 'unblocked', event]))
  }
  await here.world.runTo(200)
  offer(one, 'a', 50)
  await here.world.runTo(1_000)
  offer(one, 'a', 50)
  expect(events).toEqual([
    ['one', 'blocked', { policy: 'p', key: 'a', durationMs: 2_000, cause: 'exceeded' }],
    ['two', 'blocked', { policy: 'p', key: 'a', durationMs: 2_000, cause: 'remote' }],
  ])
  events.length = 0
  await here.world.runTo(2_300)
  for (const node of [one, two]) offer(node, 'a', 1)
  expect(events).toEqual([
    ['one', 'unblocked', { policy: 'p', key: 'a', cause: 'expired' }],
    ['two', 'unblocked', { policy: 'p', key: 'a', cause: 'expired' }],
  ])
  await here.close()
})

test('a node that starts during a cooldown learns of it', async () => {
  const here = scene()
  const one = here.node({ limit: 5, interval: 1_000, cooldown: '1m' })
  offer(one, 'a', 6)
  await here.world.run(100)
  const two = here.node({ limit: 5, interval: 1_000, cooldown: '1m' })
  two.start()
  await here.world.run(1)
  expect(two.check('a')).toMatchObject({ allowed: false, reason: 'cooldown' })
  expect(Math.abs(two.check('a').retryAfterMs - one.check('a').retryAfterMs)).toBeLessThanOrEqual(1)
  await here.close()
})

test('a length is told as it was given, at whatever fraction of a millisecond it begins', () => {
  // Here the sum has fewer decimals than the time.
  const clock = new ManualTime(1_000_000)
  const throttler = createThrottler({ policies: [{ limit: 1, interval: '1m', cooldown: '1h', coordination: 'local' }], clock })
  const lengths: number[] = []
  throttler.on('blocked', ({ durationMs: length }) => lengths.push(length))
  for (let i = 0; i < 1_000; i++) {
    clock.advance(Math.PI)
    throttler.check(`${i}`)
    expect(throttler.check(`${i}`).retryAfterMs).toBe(3_600_000)
  }
  expect(new Set(lengths)).toEqual(new Set([3_600_000]))
})
