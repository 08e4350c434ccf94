import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  each,
  flag,
  ifUsable,
  items,
  list,
  mark,
  number,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  row,
  text,
  whole,
} from '../../src/report/readers.ts'

const schema = {
  amount: number(0, 10),
  place: whole(-5, 5),
  name: text(3),
  kind: oneOf('set', 'lift'),
  wanted: flag,
  manual: mark,
  epoch: optional(whole(0, 100)),
  limit: orNull(number(0, 10), Number.POSITIVE_INFINITY),
  status: ifUsable(text(3)),
  cells: list(3, row({ at: whole(0, 9), units: number(0, 9) })),
  blocks: items(3, object({ key: text(3) }), () => undefined),
  parts: each(3, object({ key: text(3) }), () => undefined),
}
const read = object(schema)
const good = {
  amount: 10,
  place: -5,
  name: 'abc',
  kind: 'set',
  wanted: true,
  manual: true,
  epoch: 0,
  limit: null,
  status: 'up',
  cells: [[1, 2]],
  blocks: [{ key: 'a' }, { key: 'long' }],
  parts: [{ key: 'a' }, { key: 'long' }],
}

/** Makes a value late, because fast-check itself would read hostile values. */
type Make = () => unknown

const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSparseArray: true }).map(
  (value): Make =>
    () =>
      value,
)
const names = fc.constantFrom(...Object.keys(good))
/** One of the values that a good object has, or anything. */
const part = fc.oneof(
  fc.constantFrom<unknown>(...Object.values(good), Number.NaN, -0, Number.POSITIVE_INFINITY, new Array(1e9)).map(
    (value): Make =>
      () =>
        value,
  ),
  anything,
)

function allOf(makes: readonly Make[]): Make {
  return () => makes.map((make) => make())
}

function thrower(): never {
  throw new Error('not readable')
}

/** Values that throw, or change, when they are read. */
const hostile: fc.Arbitrary<Make> = fc.oneof(
  fc.boolean().map((isList) => () => {
    const { proxy, revoke } = Proxy.revocable(isList ? [] : {}, {})
    revoke()
    return proxy
  }),
  fc.boolean().map((isList) => () => new Proxy(isList ? [] : {}, { get: thrower })),
  fc.tuple(names, part).map(([name, value]) => () => {
    let reads = 0
    return Object.defineProperty({ ...good }, name, { get: () => (reads++ === 0 ? value() : thrower()) })
  }),
  names.map((name) => () => Object.defineProperty({ ...good }, name, { get: thrower })),
)

/** A good object with other values in some places. */
const spoiled: fc.Arbitrary<Make> = fc
  .dictionary(names, fc.oneof(part, hostile), { maxKeys: 3 })
  .map((changes) => () => ({ ...good, ...Object.fromEntries(Object.entries(changes).map(([name, make]) => [name, make()])) }))

const readers: readonly Reader<unknown>[] = [read, row(schema), ...Object.values(schema)]

describe('a reader', () => {
  test('copies the parts that it knows, and leaves optional ones out', () => {
    expect(read({ ...good, other: 1 })).toStrictEqual({
      ...good,
      limit: Number.POSITIVE_INFINITY,
      cells: [{ at: 1, units: 2 }],
      blocks: [{ key: 'a' }],
      parts: [{ key: 'a' }, undefined],
    })
    const { manual: _, epoch: __, status: ___, ...rest } = good
    expect(Object.keys(read({ ...rest, status: 'too long' }) ?? {})).toEqual(Object.keys({ ...rest }))
  })

  test('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(anything, hostile, spoiled, fc.array(fc.oneof(part, hostile)).map(allOf)), (make) => {
        for (const reader of readers) reader(make())
      }),
      { numRuns: 1_000 },
    )
  })

  test('returns values within their bounds only', () => {
    fc.assert(
      fc.property(spoiled, (make) => {
        const copy = read(make())
        if (copy === undefined) return
        expect(copy.amount).toSatisfy((amount: number) => amount >= 0 && amount <= 10)
        expect(copy.place).toSatisfy((place: number) => Number.isInteger(place) && Math.abs(place) <= 5)
        expect(copy.name.length).toBeLessThanOrEqual(3)
        expect(['set', 'lift']).toContain(copy.kind)
        expect([true, false]).toContain(copy.wanted)
        expect([true, undefined]).toContain(copy.manual)
        expect(copy.epoch ?? 0).toSatisfy((epoch: number) => Number.isInteger(epoch) && epoch >= 0 && epoch <= 100)
        expect(copy.limit).toSatisfy((limit: number) => limit === Number.POSITIVE_INFINITY || (limit >= 0 && limit <= 10))
        expect((copy.status ?? '').length).toBeLessThanOrEqual(3)
        for (const all of [copy.cells, copy.blocks, copy.parts]) expect(all.length).toBeLessThanOrEqual(3)
      }),
      { numRuns: 1_000 },
    )
  })

  test('reads each property once, and shares no object with the value', () => {
    const counts = new Map<string, number>()
    const given: unknown[] = []
    const watched = <T extends object>(value: T, path: string): T => {
      given.push(value)
      return new Proxy(value, {
        get(target, name) {
          const at = `${path}.${String(name)}`
          counts.set(at, (counts.get(at) ?? 0) + 1)
          const item = Reflect.get(target, name) as unknown
          return typeof item === 'object' && item !== null ? watched(item, at) : item
        },
      })
    }
    const copy = read(watched(structuredClone(good), ''))
    expect(Math.max(...counts.values())).toBe(1)
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      expect(given).not.toContain(value)
      for (const item of Object.values(value)) walk(item)
    }
    walk(copy)
    expect(copy).toBeDefined()
  })

  test('of a list reports unusable items: once for all that are dropped, each time for those that keep their place', () => {
    let bad = 0
    const count = () => {
      bad++
    }
    const small = number(0, 1)
    expect(items(3, small, count)([1, 2, 3, 0])).toEqual([1])
    expect(bad).toBe(1)
    expect(items(3, small, count)([1, 0])).toEqual([1, 0])
    expect(bad).toBe(1)
    expect(each(3, small, count)([1, 2, 3])).toEqual([1, undefined, undefined])
    expect(bad).toBe(3)
    expect(each(3, small, count)([1, 1, 1, 1])).toBe(undefined)
    expect(list(3, small)([1, 1, 1, 1])).toBe(undefined)
    expect(list(3, small)([1, 2])).toBe(undefined)
    for (const reader of [list(Infinity, small), each(Infinity, small, count), items(Infinity, small, count)])
      expect(reader({ length: 1 })).toBe(undefined)
  })
})
