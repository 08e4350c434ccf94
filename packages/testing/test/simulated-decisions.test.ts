import { createThrottler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { expect, test } from 'vitest'
import { NodeClock, poisson, simulate, simulatedStore, VirtualTime } from '../src/index.ts'

const policies = [{ name: 'p', limit: 3, interval: '1m', coordination: 'central', failMode: 'closed' }] as const

async function setUp() {
  const time = new VirtualTime()
  const store = simulatedStore({ time, network: { latency: 2 } })
  const nodes = [1, 2].map(() => createThrottler({ clock: new NodeClock(time), store, policies }).start())
  // The code for decisions in the store is loaded in real time, at both ends.
  for (const one of nodes) await adapterOf(one).inspected.coordinator?.loading
  await store.opened()
  // The processes need this time to count each other.
  await time.runUntil(2_000)
  return { time, store, nodes }
}

test('a simulated store decides about requests of all nodes, a round trip away', async () => {
  const { time, store, nodes } = await setUp()
  const before = store.statistics.decisions
  const allowed: [number, boolean][] = []
  const begun = time.now
  for (let i = 0; i < 5; i++) {
    void nodes[i % 2]?.checkAsync('key').then((decision) => allowed.push([time.now - begun, decision.allowed]))
    await time.runUntil(time.now + 10)
  }
  expect(allowed).toEqual([
    [4, true],
    [14, true],
    [24, true],
    [34, false],
    [44, false],
  ])
  expect(store.statistics.decisions).toBe(before + 5)
})

test('a simulated store that refuses connections decides about nothing', async () => {
  const { time, store, nodes } = await setUp()
  store.fail()
  let decided: string | undefined
  void nodes[0]?.checkAsync('key').then(({ reason }) => {
    decided = reason
  })
  await time.runUntil(time.now + 60)
  expect(decided).toBe('storeDown')
})

test('a simulation asks with checkAsync, and counts what the store is asked', async () => {
  const policy = { name: 'p', limit: 50, interval: '10s', coordination: 'central', failMode: 'closed' } as const
  const { allowed, overshoot, operations, waited } = await simulate({ policy, nodes: 3, intervals: 4, load: poisson(2) })
  expect(allowed).toBe(200)
  expect(overshoot.max).toBe(0)
  expect(waited).toBe(1)
  expect(operations).toBeGreaterThanOrEqual(50)
  // A process remembers a rejection for a while, so most rejected requests need no call to the store.
  expect(operations).toBeLessThan(100)
})
