import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Policy } from '../src/decide/policy.ts'
import { ordinalAt } from '../src/time/intervals.ts'
import { type Node, scene } from './support/nodes.ts'
import { hubTotal } from './support/stores.ts'
import { EPOCH } from './support/world.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 30_000 })

const arrival = fc.record({
  wait: fc.integer({ min: 0, max: 60 }),
  node: fc.nat({ max: 4 }),
  key: fc.constantFrom('a', 'b', '__proto__'),
  cost: fc.constantFrom(1, 1, 1, 2, 5, 0.5),
  /** Refunds at once, or not. */
  back: fc.boolean(),
})

const arrivals = fc.array(arrival, { minLength: 5, maxLength: 120 })

test('once all nodes are closed the hub holds what they allowed, less what was refunded, in each interval', async () => {
  const run = fc.record({
    arrivals,
    nodes: fc.integer({ min: 1, max: 5 }),
    limit: fc.integer({ min: 5, max: 60 }),
    roundTrip: fc.constantFrom(0, 1, 17),
    offsets: fc.array(fc.integer({ min: -40, max: 40 }), { minLength: 5, maxLength: 5 }),
    stalls: fc.boolean(),
  })
  await fc.assert(
    // With coordination by spans no key is quiet, so that each interval's counts are sent, however few.
    fc.asyncProperty(run, async ({ arrivals: list, nodes: count, limit, roundTrip, offsets, stalls }) => {
      const { world, node, store, close } = scene()
      store.roundTrip = roundTrip
      const policy = { limit, interval: 500, coordination: 'periodic', cooldown: 0 } as const
      const nodes = Array.from({ length: count }, (_, i) => node(policy, { offset: offsets[i] as number }))
      for (const one of nodes) one.start()
      await world.run(50)
      const expected = new Map<string, { taken: number; given: number }>()
      for (const { wait, node: which, key, cost, back } of list) {
        if (stalls && wait > 50) world.stall(wait)
        else await world.run(wait)
        const decision = (nodes[which % count] as Node).check(key, cost)
        if (!decision.allowed) continue
        const { ordinal } = decision as unknown as { ordinal: number }
        const id = `${ordinal} ${key}`
        const sum = expected.get(id) ?? { taken: 0, given: 0 }
        sum.taken += cost
        if (back) {
          ;(nodes[which % count] as Node).refund(decision)
          sum.given += cost
        }
        expected.set(id, sum)
      }
      await world.run(200)
      await close()
      const checked = nodes[0]?.policies[0] as Policy
      for (const [id, sum] of expected) {
        const [ordinal, key] = id.split(' ') as [string, string]
        const found = hubTotal(store.hub, checked, key, Number(ordinal) as never)
        expect([id, found.taken, found.given]).toEqual([id, sum.taken, sum.given])
      }
    }),
    { numRuns: 60 },
  )
})

test('the same in one long interval in the background, where close sends also what is quiet', async () => {
  const run = fc.record({
    arrivals,
    nodes: fc.integer({ min: 1, max: 5 }),
    limit: fc.integer({ min: 5, max: 300 }),
    roundTrip: fc.constantFrom(0, 1, 17),
  })
  await fc.assert(
    fc.asyncProperty(run, async ({ arrivals: list, nodes: count, limit, roundTrip }) => {
      const { world, node, store, close } = scene()
      store.roundTrip = roundTrip
      const nodes = Array.from({ length: count }, () => node({ limit, interval: '1m', spans: 50 }))
      const expected = new Map<string, number>()
      for (const { wait, node: which, key, cost, back } of list) {
        await world.run(wait)
        const one = nodes[which % count] as Node
        const decision = one.check(key, cost)
        if (!decision.allowed) continue
        if (back) one.refund(decision)
        else expected.set(key, (expected.get(key) ?? 0) + cost)
      }
      await close()
      for (const [key, net] of expected) {
        const { taken, given } = hubTotal(store.hub, nodes[0]?.policies[0] as Policy, key, ordinalAt(EPOCH, 60_000))
        expect([key, taken - given]).toEqual([key, net])
      }
    }),
    { numRuns: 60 },
  )
})

test('nobody is rejected while the demand is at most the limit, whatever the nodes and their traffic', async () => {
  const run = fc.record({
    arrivals,
    nodes: fc.integer({ min: 1, max: 5 }),
    roundTrip: fc.constantFrom(0, 1, 17, 80),
    interval: fc.constantFrom(300, 1_000, 5_000),
    cooldown: fc.constantFrom(0, 10_000),
  })
  await fc.assert(
    fc.asyncProperty(run, async ({ arrivals: list, nodes: count, roundTrip, interval, cooldown }) => {
      // The greatest demand of any interval and key is the limit.
      const demand = new Map<string, number>()
      let at = 50
      for (const { wait, key, cost } of list) {
        at += wait
        const id = `${Math.floor(at / interval)} ${key}`
        demand.set(id, (demand.get(id) ?? 0) + cost)
      }
      const limit = Math.max(5, ...demand.values())
      const { world, node, store, close } = scene()
      store.roundTrip = roundTrip
      const nodes = Array.from({ length: count }, () => node({ limit, interval, cooldown }))
      for (const one of nodes) one.start()
      await world.runTo(50)
      for (const { wait, node: which, key, cost } of list) {
        await world.run(wait)
        expect((nodes[which % count] as Node).check(key, cost)).toMatchObject({ allowed: true, reason: 'ok' })
      }
      await close()
    }),
    { numRuns: 60 },
  )
})

test('one node alone never allows more than the limit in an interval', async () => {
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 5, max: 40 }), fc.constantFrom(0, 17, 80), async (list, limit, roundTrip) => {
      const { world, node, store, close } = scene()
      store.roundTrip = roundTrip
      const one = node({ limit, interval: 700 })
      const allowed = new Map<string, number>()
      for (const { wait, key, cost } of list) {
        await world.run(wait)
        const id = `${ordinalAt(one.clock.now(), 700)} ${key}`
        if (one.check(key, cost).allowed) allowed.set(id, (allowed.get(id) ?? 0) + cost)
      }
      expect(Math.max(0, ...allowed.values())).toBeLessThanOrEqual(limit)
      await close()
    }),
    { numRuns: 60 },
  )
})
