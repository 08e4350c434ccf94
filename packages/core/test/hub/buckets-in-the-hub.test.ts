import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Hub } from '../../src/hub/hub.ts'
import type { Announcement, Cell, StorePolicy, SyncResult } from '../../src/store/contract.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

const WIDTH = 100
/** 80 units, of which 2 drain in the time of a cell, and all in 40 cells. */
const policy: StorePolicy = { id: 'bucket', width: WIDTH, cells: 60, limit: 80, hot: 40, ttl: 12_000, drain: 2 }

class Scene {
  time = 1_000_000_000
  readonly announcements: Announcement[] = []
  readonly hub: Hub

  constructor() {
    const clock: Clock = {
      now: () => this.time,
      monotonic: () => this.time,
      setTimeout: () => undefined,
      clearTimeout: () => undefined,
      defer: (run) => run(),
    }
    this.hub = new Hub(clock)
    this.hub.listen((one) => this.announcements.push(one))
  }

  get ordinal(): Ordinal {
    return Math.floor(this.time / WIDTH) as Ordinal
  }

  send(node: string, cells: readonly (readonly [ordinal: number, taken: number, given?: number])[], of: StorePolicy = policy): SyncResult {
    const sent = cells.map(([ordinal, taken, given = 0]): Cell => ({ ordinal: ordinal as Ordinal, taken, given }))
    return this.hub.exchange(node, { entries: [{ policy: of, key: 'k', cells: sent }], blocks: [] }).results[0] as SyncResult
  }

  level(of: StorePolicy = policy): number {
    return this.send('asks', [[this.ordinal, 0]], of).cells[0]?.level as number
  }
}

describe('buckets in the hub', () => {
  test('units are in it, and run out', () => {
    const scene = new Scene()
    const { ordinal } = scene
    expect(scene.send('a', [[ordinal, 10]]).cells).toEqual([{ ordinal, taken: 10, given: 0, level: 10 }])
    scene.time += 3 * WIDTH
    expect(scene.level()).toBe(4)
    expect(scene.send('b', [[scene.ordinal, 5]]).cells[0]).toMatchObject({ taken: 15, level: 9 })
    scene.time += 10 * WIDTH
    expect(scene.level()).toBe(0)
  })

  test('what ran out while it was empty is not made up for', () => {
    const scene = new Scene()
    const { ordinal } = scene
    scene.send('a', [[ordinal - 30, 10]])
    expect(scene.send('b', [[ordinal, 10]]).cells[0]?.level).toBe(10)
  })

  test('the level of a bucket that is never empty is remembered, however long', () => {
    const scene = new Scene()
    scene.send('a', [[scene.ordinal, 80]])
    for (let cell = 1; cell <= 500; cell++) {
      scene.time += WIDTH
      scene.send(cell % 2 === 0 ? 'a' : 'b', [[scene.ordinal, 2]])
    }
    expect(scene.level()).toBe(80)
    scene.send('a', [[scene.ordinal, 300]])
    scene.time += 120 * WIDTH
    expect(scene.level()).toBeGreaterThan(0)
  })

  test('refunds lower it', () => {
    const scene = new Scene()
    const { ordinal } = scene
    scene.send('a', [[ordinal, 10]])
    expect(scene.send('a', [[ordinal, 10, 4]]).cells[0]).toMatchObject({ taken: 10, given: 4, level: 6 })
    expect(scene.send('a', [[ordinal, 10, 4]]).cells[0]?.level).toBe(6)
  })

  test('after a silence the nodes may bring what is older, each in its turn', () => {
    const scene = new Scene()
    scene.send('a', [[scene.ordinal, 80]])
    const begun = scene.ordinal
    scene.time += 100 * WIDTH
    const missed = (node: string): SyncResult =>
      scene.send(
        node,
        Array.from({ length: 10 }, (_, place) => [begun + 10 * place, 7 + (node === 'a' && place === 0 ? 80 : 0)] as const),
      )
    for (const node of ['a', 'b', 'c']) missed(node)
    // 80 and 30 times 7, less 100 times 2.
    expect(scene.level()).toBe(90)
  })

  test('what two nodes missed in two outages in a row is all in it, though one of them was heard in between', () => {
    const scene = new Scene()
    scene.send('a', [[scene.ordinal, 40]])
    scene.send('b', [[scene.ordinal, 40]])
    const begun = scene.ordinal
    const missed = (node: string, to: number): SyncResult =>
      scene.send(
        node,
        Array.from({ length: to / 10 }, (_, place) => [begun + 10 * place, place === 0 ? 40 : 10] as const),
      )
    scene.time += 40 * WIDTH
    missed('a', 40)
    scene.time += 39 * WIDTH
    missed('a', 80)
    scene.time += WIDTH
    scene.send('a', [[scene.ordinal, 1]])
    scene.time += 2 * WIDTH
    missed('b', 80)
    // 80 and twice 70 and one, less 82 times 2.
    expect(scene.level()).toBe(57)
  })

  test.each([
    ['a limit that was lower', { ...policy, limit: 1, drain: 1 / 60 }, 0],
    ['a clock that was ahead', policy, 86_400_000],
  ])('units are not held back for longer than a span on account of %s', (_why, other, ahead) => {
    const scene = new Scene()
    const quick = { ...policy, limit: 1, drain: 0.5 }
    scene.time += ahead
    scene.send('a', [[scene.ordinal, 1]], other)
    scene.time -= ahead
    for (let sent = 0; sent < 25; sent++) {
      scene.time += 2 * WIDTH
      scene.send('a', [[scene.ordinal, 1]], quick)
    }
    // At the lower rate hardly any units drain, so the level shows the units that are not yet added to it.
    expect(scene.level({ ...quick, drain: 1e-6 })).toBeLessThanOrEqual(5)
  })

  test('no more groups are kept than the contract says, and the level stays below the truth', () => {
    const scene = new Scene()
    const fine = { ...policy, drain: 20 }
    for (let cell = 0; cell < 60; cell++) scene.send('a', [[scene.ordinal - 60 + cell, 20]], fine)
    expect(scene.level(fine)).toBeLessThanOrEqual(20)
  })

  test('a key that is used now and then is known to the last unit, however long', () => {
    const scene = new Scene()
    for (let use = 1; use <= 100; use++) {
      scene.time += 30 * WIDTH
      expect(scene.send(use % 2 === 0 ? 'a' : 'b', [[scene.ordinal, 60]]).cells[0]?.level).toBe(60)
    }
  })

  test('a debt beyond what the policy remembers is forgotten, and a resent batch does not bring it back', () => {
    const scene = new Scene()
    const lenient = { ...policy, maxDebt: 10 }
    for (let sent = 0; sent < 3; sent++) scene.send('a', [[scene.ordinal, 400]], lenient)
    expect(scene.level(lenient)).toBe(90)
    scene.time += 5 * WIDTH
    expect(scene.send('a', [[scene.ordinal - 5, 405]], lenient).cells[0]?.level).toBe(85)
  })

  test('a full bucket is announced, and again when units still come, but not at once', () => {
    const scene = new Scene()
    const levels = () => scene.announcements.splice(0).map((one) => (one.type === 'total' ? one.cells[0]?.level : one.type))
    scene.send('a', [[scene.ordinal, 39]])
    expect(levels()).toEqual([])
    scene.send('a', [[scene.ordinal, 40]])
    expect(levels()).toEqual([40])
    scene.send('a', [[scene.ordinal, 42]])
    expect(levels()).toEqual([])
    // A twentieth of its size.
    scene.send('a', [[scene.ordinal, 46]])
    expect(levels()).toEqual([46])
    scene.send('b', [[scene.ordinal, 31]])
    scene.send('b', [[scene.ordinal, 33]])
    expect(levels()).toEqual([77])
    scene.time += 1
    scene.send('b', [[scene.ordinal, 34]])
    scene.send('b', [[scene.ordinal, 35]])
    expect(levels()).toEqual([80])
    scene.time += 10
    scene.send('b', [[scene.ordinal, 36]])
    expect(levels()).toEqual([82])
  })

  test('a node that starts is told of keys that are hot, until they are not', () => {
    const scene = new Scene()
    scene.send('a', [[scene.ordinal, 50]])
    const hot = () => {
      const heartbeat = { ttl: 1000, cursor: undefined, policies: [policy] }
      return scene.hub.exchange('new', { entries: [], blocks: [], heartbeat }).heartbeat?.hot.map(({ cells }) => cells[0]?.level)
    }
    expect(hot()).toEqual([50])
    scene.time += 14 * WIDTH
    expect(hot()).toEqual([22])
    scene.time += 5 * WIDTH
    expect(hot()).toEqual([])
  })

  test('all expires, a debt when it is paid back', () => {
    const scene = new Scene()
    scene.send('a', [[scene.ordinal, 10]])
    scene.send('b', [[scene.ordinal, 1000]])
    scene.time += 40_000
    expect(scene.hub.size).toBe(1)
    scene.time += 40_000
    expect(scene.hub.size).toBe(0)
  })
})

const batches = fc.array(
  fc.record({
    node: fc.constantFrom('a', 'b', 'c'),
    wait: fc.integer({ min: 0, max: 4 * WIDTH }),
    units: fc.integer({ min: 1, max: 30 }),
    /** Cells by which it is sent late. */
    late: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 120 })),
    again: fc.boolean(),
  }),
  { maxLength: 60 },
)

/** The level of a bucket that counted each unit when it was taken. */
function exact(taken: readonly { readonly at: number; readonly units: number }[], now: number, drain: number): number {
  let level = 0
  let then = 0
  for (const { at, units } of taken) {
    level = Math.max(0, level - ((at - then) * drain) / WIDTH) + units
    then = at
  }
  return Math.max(0, level - ((now - then) * drain) / WIDTH)
}

test('the level is never above the exact one, whatever comes late, twice, partly or in another order', () => {
  fc.assert(
    fc.property(batches, (list) => {
      const scene = new Scene()
      const taken: { at: number; units: number }[] = []
      const own = new Map<string, Map<number, number>>()
      const waiting: { node: string; due: number; cells: [number, number][] }[] = []
      for (const { node, wait, units, late, again } of list) {
        scene.time += wait
        taken.push({ at: scene.time, units })
        const cells = own.get(node) ?? new Map<number, number>()
        own.set(node, cells.set(scene.ordinal, (cells.get(scene.ordinal) ?? 0) + units))
        waiting.push({ node, due: scene.ordinal + late, cells: [...cells].slice(-3) })
        for (const batch of waiting) {
          if (batch.due > scene.ordinal) continue
          const result = scene.send(batch.node, batch.cells)
          const now = result.cells[0]?.level as number
          expect(now - (policy.drain as number) * (scene.time / WIDTH - scene.ordinal)).toBeLessThanOrEqual(
            exact(taken, scene.time, policy.drain as number) + 1e-6,
          )
          if (!again) batch.due = Number.POSITIVE_INFINITY
        }
      }
    }),
    { numRuns: 500 },
  )
})

test('within a span the order does not matter, nor does what is sent twice', () => {
  const sent = fc.array(
    fc.record({ node: fc.constantFrom('a', 'b'), ordinal: fc.nat(4).map((place) => 8 * place), units: fc.integer({ min: 1, max: 30 }) }),
    { minLength: 1, maxLength: 20 },
  )
  fc.assert(
    fc.property(sent, fc.infiniteStream(fc.nat()), (list, order) => {
      // Absolute counts only grow.
      const counts = new Map<string, number>()
      const grown = list.map(({ node, ordinal, units }) => {
        const id = `${node} ${ordinal}`
        counts.set(id, (counts.get(id) ?? 0) + units)
        return { node, ordinal, taken: counts.get(id) as number }
      })
      const levelAfter = (batches: typeof grown): number => {
        const scene = new Scene()
        for (const { node, ordinal, taken } of batches) scene.send(node, [[scene.ordinal - 35 + ordinal, taken]])
        return scene.level()
      }
      const shuffled = [...grown, ...grown.slice(0, 3)].map((batch) => [order.next().value as number, batch] as const)
      expect(levelAfter(shuffled.toSorted(([one], [other]) => one - other).map(([, batch]) => batch))).toBeCloseTo(levelAfter(grown), 9)
    }),
    { numRuns: 300 },
  )
})
