import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Account } from '../../src/hub/account.ts'
import { Hub } from '../../src/hub/hub.ts'
import { readMessage, readRequest } from '../../src/ipc/check.ts'
import { decideFor } from '../../src/ipc/decide.ts'
import { pack, packDecide, seal } from '../../src/ipc/envelope.ts'
import type { Decide, StorePolicy, SyncRequest } from '../../src/store/contract.ts'
import { type LeaseAsk, MOST_RETURNS } from '../../src/store/leases/ask.ts'
import type { Ordinal } from '../../src/time/intervals.ts'
import { EPOCH, World } from '../support/world.ts'

const runs = { numRuns: 2_000 }

const policy: StorePolicy = { id: 'p', width: 60_000, cells: 1, limit: 10, hot: 3, ttl: 120_000 }
const sliding: StorePolicy = { id: 's', width: 1_000, cells: 4, limit: 10, hot: Number.POSITIVE_INFINITY, ttl: 8_000 }
const ordinal = Math.floor(EPOCH / 60_000) as Ordinal
const lease: LeaseAsk = {
  ...{ ordinal, incarnation: 0, seq: 1, granted: 5, returned: 1, taken: 3, given: 0, cleared: 0, epoch: 0 },
  ...{ least: 5, waiting: 5, upTo: 9, limit: 10, nodes: 2, early: 1_000, lifetime: 4_000 },
  open: [
    { due: EPOCH + 5_000, back: 2 },
    { due: EPOCH + 6_000, back: -1.5 },
  ],
}
const full: SyncRequest = {
  time: EPOCH,
  entries: [
    { policy, key: 'a', cells: [{ ordinal, taken: 5, given: 1 }] },
    { policy: sliding, key: 'b', cells: [{ ordinal: Math.floor(EPOCH / 1_000) as Ordinal, taken: 2, given: 0 }] },
    { policy, key: 'e', cells: [], lease },
  ],
  blocks: [
    { policy, key: 'c', kind: 'exceeded', remaining: 1_000, growth: { factor: 2, max: 10_000, memory: 10_000 } },
    { policy: sliding, key: 'd', kind: 'lift', remaining: 0 },
  ],
  heartbeat: { ttl: 4_000, cursor: undefined, policies: [policy, sliding], status: '{}', rules: '[]', watch: true },
}

function throughJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Values that `advanced` serialization can carry, and more. */
const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withTypedArray: true,
  withNullPrototype: true,
  withSparseArray: true,
})
const hostile: fc.Arbitrary<unknown> = fc.oneof(
  anything,
  fc.constantFrom<unknown>(
    { length: 1e9 },
    new Array(1e9),
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    1e300,
    7,
    null,
    undefined,
    '',
    'x'.repeat(5_000),
    [],
    [[]],
  ),
)

/** A valid request with wrong values in one or two of its places. */
const spoiled = fc
  .record({ at: fc.nat(), value: hostile, again: fc.nat(), second: hostile })
  .map(({ at, value, again, second }) => replaced(replaced(throughJson(pack(full)), at, value), again, second))

function replaced(root: unknown, at: number, value: unknown): unknown {
  const holder = { root }
  const places: [holder: Record<string, unknown>, name: string][] = []
  const seen = new Set<object>()
  const walk = (object: object): void => {
    if (seen.has(object) || places.length > 2_000 || (Array.isArray(object) && object.length > 1_000)) return
    seen.add(object)
    for (const [name, item] of Object.entries(object)) {
      places.push([object as Record<string, unknown>, name])
      if (typeof item === 'object' && item !== null) walk(item)
    }
  }
  walk(holder)
  const [object, name] = places[at % places.length] as [Record<string, unknown>, string]
  try {
    object[name] = value
  } catch {
    // A frozen value stays unchanged.
  }
  return holder.root
}

describe('a message of a child or a parent', () => {
  test('that is ours comes through as it was', () => {
    const read = readRequest(throughJson(pack(full)), EPOCH)
    expect(read?.wrong).toBe(undefined)
    expect(read?.request).toEqual(full)
    for (const message of [
      { kind: 'join', node: 'n' },
      { kind: 'leave', node: 'n' },
      { kind: 'failure', node: 'n', id: 1, message: 'no' },
      { kind: 'announcement', announcement: { type: 'block', policyId: 'p', key: 'k', remaining: 1 } },
    ] as const)
      expect(readMessage(throughJson(seal(message)))).toEqual(message)
  })

  test('that is not ours, or is none, is left alone', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const others = [
      circle,
      proxy,
      new Map([['@weir/ipc', 1]]),
      Object.create({ '@weir/ipc': 1, message: { kind: 'join', node: 'n' } }),
      1n,
      new Uint8Array(3),
      new Date(),
      () => 0,
    ]
    for (const value of others) expect(readMessage(value)).toBe(undefined)
    fc.assert(
      fc.property(anything, (value) => readMessage(value) === undefined),
      runs,
    )
    fc.assert(
      fc.property(anything, (message) => {
        readMessage({ '@weir/ipc': 1, message })
      }),
      runs,
    )
  })

  test('about the audit log is bounded', () => {
    const audit = (rest: object) => readMessage(throughJson({ '@weir/ipc': 1, message: { kind: 'audit', node: 'n', id: 1, ...rest } }))
    expect(audit({ entry: 'x'.repeat(1_000), most: 0 })).toMatchObject({ kind: 'audit', most: 0 })
    expect(audit({ most: 1_000 })).toEqual({ kind: 'audit', node: 'n', id: 1, most: 1_000 })
    for (const wrong of [{}, { most: 1_001 }, { most: -1 }, { most: 'all' }, { most: 0, entry: 5 }, { most: 0, entry: 'x'.repeat(1_001) }])
      expect(audit(wrong)).toBe(undefined)
  })

  test.each([
    ['cells of any length', { cells: { length: 1e9 } }],
    ['a numeric key', { key: 7 }],
    ['a key that is too long', { key: 'x'.repeat(100_000) }],
    ['a policy that is not there', { place: 99 }],
    ['cells that are no triples', { cells: [1, 2] }],
    ['units that are none', { cells: [1, Number.NaN, 0] }],
    ['half a reservation of a lease', { lease: [EPOCH] }],
    ['too many reservations of a lease', { lease: Array.from({ length: 2 * (MOST_RETURNS + 1) }, () => 1) }],
    ['a reservation of a lease before all time', { lease: [-1, 1] }],
    ['a reservation of a lease without an end', { lease: [null, 1] }],
    ['a reservation of a lease that returns more than there is', { lease: [EPOCH, 2 ** 60] }],
    ['a reservation of a lease that returns a text', { lease: [EPOCH, '1'] }],
  ])('with %s fails alone', (_, change) => {
    const { place = 0, key = 'k', cells = [ordinal, 1, 0], lease: more } = change as Record<string, unknown>
    const packed = pack({ entries: [full.entries[0] as never, full.entries[0] as never], blocks: [] })
    const numbers = pack({ entries: [{ policy, key: 'k', cells: [], lease: { ...lease, open: [] } }], blocks: [] }).entries[0]?.[5] ?? []
    const entry = more === undefined ? [place, key, cells] : [place, key, [], 0, false, [...numbers, ...(more as [])]]
    const spoilt = { ...packed, entries: [entry, packed.entries[0]] }
    const read = readRequest(spoilt, EPOCH)
    const world = new World()
    const reply = read?.complete(new Hub(world.clock()).exchange('n', read.request))
    expect(reply?.results).toMatchObject([undefined, { cells: [{ taken: 5, given: 1 }] }])
    expect(read?.wrong).toBe('an entry')
  })

  test('of any shape leaves a hub that serves others as before', () => {
    const world = new World()
    const hub = new Hub(world.clock())
    const honest = { entries: [{ policy: { ...policy, id: 'honest' }, key: 'k', cells: [{ ordinal, taken: 7, given: 0 }] }], blocks: [] }
    hub.exchange('honest', honest)
    const account = new Account(10_000_000)
    fc.assert(
      fc.property(fc.oneof(spoiled, anything), (packed) => {
        const read = readRequest(packed, EPOCH)
        if (read === undefined) return
        const reply = read.complete(hub.exchange('liar', read.request, account))
        expect(reply.results).toHaveLength((packed as { entries: [] }).entries.length)
        JSON.stringify(reply)
      }),
      runs,
    )
    expect(
      hub.exchange('other', {
        ...honest,
        entries: [{ ...(honest.entries[0] as never as object), cells: [{ ordinal, taken: 0, given: 0 }] } as never],
      }).results[0]?.cells[0],
    ).toEqual({
      ordinal,
      taken: 7,
      given: 0,
    })
  })
})

const bucketPolicy = { id: 'p', step: { id: 'bucket' } as never, parameters: [60_000, -1, -1, 10] }
const take: Decide = {
  sequence: 1,
  time: EPOCH,
  questions: [
    {
      ...{ policy: bucketPolicy, key: 'k', kind: 'take', units: 5, limit: 10, at: EPOCH },
      reservation: { id: 7, end: EPOCH + 1_000, units: 5, due: 2 },
    },
  ],
}

/** The remaining units of a key, as another child sees them. */
function remaining(hub: Hub, key: string): unknown {
  const look = { ...take, questions: take.questions.map((one) => ({ ...one, key, units: 0 })) }
  return decideFor(hub, 'other', packDecide(look), new Account(1e6), EPOCH)?.[0]?.[1]
}

describe('a child that reserves', () => {
  test.each<[what: string, reservation: unknown, isRead: boolean]>([
    ['a reservation', [7, EPOCH + 1_000, 5, 2], true],
    ['an end that has passed', [7, 0, 5, 2], true],
    ['a negative id', [-1, EPOCH, 5, 2], false],
    ['half an id', [0.5, EPOCH, 5, 2], false],
    ['an id that is not exact', [2 ** 53, EPOCH, 5, 2], false],
    ['an end before all time', [7, -1, 5, 2], false],
    ['no end', [7, null, 5, 2], false],
    ['an endless end', [7, Number.POSITIVE_INFINITY, 5, 2], false],
    ['negative units', [7, EPOCH, -5, 2], false],
    ['negative units at its end', [7, EPOCH, 5, -2], false],
    ['units that are none', [7, EPOCH, Number.NaN, 2], false],
    ['a text', [7, EPOCH, '5', 2], false],
    ['too few numbers', [7, EPOCH, 5], false],
    ['too many numbers', [7, EPOCH, 5, 2, 1], false],
    ['an object', { id: 7, end: EPOCH, units: 5, due: 2 }, false],
  ])('%s is read: %s', (_, reservation, isRead) => {
    const hub = new Hub(new World().clock())
    const packed = packDecide(take)
    const spoilt = { ...packed, questions: [[...(packed.questions[0] ?? []).slice(0, 6), reservation]] }
    expect(decideFor(hub, 'n', spoilt, new Account(1e6), EPOCH) !== undefined).toBe(isRead)
    expect(remaining(hub, 'k')).toBe(isRead ? 5 : 10)
  })

  test('leaves the keys of others as before, whatever it sends', () => {
    const hub = new Hub(new World().clock())
    decideFor(
      hub,
      'honest',
      packDecide({ ...take, questions: take.questions.map((one) => ({ ...one, key: 'honest' })) }),
      new Account(1e6),
      EPOCH,
    )
    const account = new Account(10_000_000)
    const wrong = fc
      .record({ at: fc.nat(), value: hostile, again: fc.nat(), second: hostile })
      .map(({ at, value, again, second }) => replaced(replaced(throughJson(packDecide(take)), at, value), again, second))
    fc.assert(
      fc.property(wrong, (packed) => {
        JSON.stringify(decideFor(hub, 'liar', packed, account, EPOCH))
      }),
      runs,
    )
    expect(remaining(hub, 'honest')).toBe(5)
  })

  test('pays for the memory of its open reservations, and gets it back', async () => {
    const world = new World()
    const hub = new Hub(world.clock())
    const account = new Account(20_000)
    let opened = 0
    for (let id = 0; id < 1_000; id++) {
      const questions = take.questions.map((one) => ({
        ...one,
        policy: { ...bucketPolicy, parameters: [60_000, -1, -1] },
        units: 1,
        limit: 1e6,
        reservation: { id, end: EPOCH + 5_000, units: 1, due: 0 },
      }))
      if (decideFor(hub, 'n', packDecide({ sequence: id + 1, time: EPOCH, questions }), account, EPOCH) !== undefined) opened++
    }
    expect(opened).toBeGreaterThan(300)
    expect(opened).toBeLessThan(600)
    expect(account.held).toBeLessThanOrEqual(20_000)
    await world.run(130_000)
    expect([hub.size, account.held]).toEqual([0, 0])
  })
})

describe('what a child makes its parent hold', () => {
  test.each([
    ['keys', (i: number) => ({ entries: [{ policy, key: `k${i}`, cells: [{ ordinal, taken: 1, given: 0 }] }], blocks: [] })],
    [
      'keys of a sliding window',
      (i: number) => ({ entries: [{ policy: sliding, key: `k${i}`, cells: [{ ordinal: 5 as Ordinal, taken: 1, given: 0 }] }], blocks: [] }),
    ],
    ['intervals', (i: number) => ({ entries: [{ policy, key: 'k', cells: [{ ordinal: i as Ordinal, taken: 1, given: 0 }] }], blocks: [] })],
    [
      'policies',
      (i: number) => ({
        entries: [{ policy: { ...policy, id: `p${i}` }, key: 'k', cells: [{ ordinal, taken: 0, given: 0 }] }],
        blocks: [],
      }),
    ],
    ['blocks', (i: number) => ({ entries: [], blocks: [{ policy, key: `k${i}`, kind: 'set' as const, remaining: 5_000 }] })],
  ])('is bounded: %s; others go on, and all of it is released', async (_, make) => {
    const world = new World()
    const hub = new Hub(world.clock())
    const all = new Account(1e9)
    const [greedy, modest] = [new Account(100_000, all), new Account(100_000, all)]
    let taken = 0
    for (let i = 1; i <= 1_000; i++) {
      const { results, blocks } = hub.exchange('greedy', make(i), greedy)
      if ([...results, ...blocks].every((part) => part !== undefined)) taken++
    }
    expect(taken).toBeGreaterThan(30)
    expect(taken).toBeLessThan(300)
    expect(greedy.held).toBeLessThanOrEqual(100_000)
    expect(hub.size).toBeLessThan(400)
    const { results, blocks } = hub.exchange('modest', make(2_000), modest)
    expect([...results, ...blocks]).not.toContain(undefined)
    for (let passed = 0; passed < 10; passed++) {
      await world.run(130_000)
      expect(hub.size).toBeGreaterThanOrEqual(0)
    }
    expect([hub.size, greedy.held, modest.held, all.held]).toEqual([0, 0, 0, 0])
  })
})

test.each<[step: string, parameters: readonly number[], isRead: boolean]>([
  ['bucket', [60_000, -1, 1], true],
  ['bucket', [60_000, -1, 1, 5], true],
  ['bucket', [60_000, -1, -2], false],
  ['bucket-warm-up', [60_000, -1, 1_000, 3], true],
  ['bucket-warm-up', [60_000, -1, 1_000, 3, 5], true],
  ['bucket-warm-up', [60_000, -1, 1_000, 3, -1], false],
  ['bucket-warm-up', [60_000, -1, 0, 3], false],
  ['bucket-warm-up', [60_000, -1, 1_000, 1], false],
  ['bucket-warm-up', [60_000, -1, 1_000], false],
  ['bucket-warm-up', [0, -1, 1_000, 3], false],
  ['bucket-warm-up', [60_000, -1, 1_000, 3, 5, 6], false],
])('a child that asks by %s with %j is answered: %s', (id, parameters, isRead) => {
  const clock = new World().clock({})
  const policy = { id: 'p', step: { id } as never, parameters }
  const asked = packDecide({ sequence: 1, time: EPOCH, questions: [{ policy, key: 'k', kind: 'take', units: 1, limit: 10, at: EPOCH }] })
  const verdicts = decideFor(new Hub(clock), 'n', asked, new Account(1e6), EPOCH)
  expect(verdicts !== undefined).toBe(isRead)
})
