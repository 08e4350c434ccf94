import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { BLOCKED, baseOf, GATE, KeyTable, KNOWN, OTHERS, SENT, TAG } from '../../src/keys/key-table.ts'
import { anyKey, hostileKeys } from '../support/nodes.ts'

// These tests compute a lot, so a busy machine needs time for them.
vi.setConfig({ testTimeout: 30_000 })

const MOST = 40

interface Model {
  readonly numbers: Map<string, number>
  readonly slots: Map<string, number>
  readonly reserved: Map<number, number>
}

type Real = KeyTable

function check(model: Model, table: Real): void {
  const wrong: unknown[] = []
  for (const [key, number] of model.numbers) {
    const slot = table.find(key)
    const found = [table.keys[slot], table.fields[baseOf(slot) + KNOWN], table.fields[baseOf(slot) + SENT], table.flags[slot]]
    const expected = [key, number, -number, number % 2 === 0 ? BLOCKED : 0]
    if (slot !== model.slots.get(key) || slot >= table.end || expected.some((value, i) => found[i] !== value))
      wrong.push([key, slot, found])
  }
  for (const [slot, number] of model.reserved) if (table.fields[baseOf(slot) + KNOWN] !== number) wrong.push(slot)
  const slots = new Set([...model.slots.values(), ...model.reserved.keys()])
  expect(wrong).toEqual([])
  expect([table.size, table.full]).toEqual([model.numbers.size, model.numbers.size >= MOST])
  expect(slots.size).toBe(model.slots.size + model.reserved.size)
}

/** Checks that a new slot is empty, and gives it its own numbers. */
function fill(table: Real, slot: number, number: number): void {
  const base = baseOf(slot)
  expect([KNOWN, TAG, OTHERS, SENT].map((field) => table.fields[base + field])).toEqual([0, 0, 0, 0])
  expect(table.flags[slot]).toBe(0)
  table.fields[base + KNOWN] = number
  table.fields[base + SENT] = -number
  table.flags[slot] = number % 2 === 0 ? BLOCKED : 0
}

class Add implements fc.Command<Model, Real> {
  readonly key: string
  readonly number: number
  constructor(key: string, number: number) {
    this.key = key
    this.number = number
  }
  check = (): boolean => true
  run(model: Model, table: Real): void {
    if (model.numbers.has(this.key)) return
    const slot = table.add(this.key)
    if (model.numbers.size >= MOST) {
      expect(slot).toBe(-1)
      expect(table.find(this.key)).toBe(-1)
    } else {
      fill(table, slot, this.number)
      model.numbers.set(this.key, this.number)
      model.slots.set(this.key, slot)
    }
    check(model, table)
  }
  toString = (): string => `add(${JSON.stringify(this.key)})`
}

class Remove implements fc.Command<Model, Real> {
  readonly index: number
  constructor(index: number) {
    this.index = index
  }
  check = (model: Readonly<Model>): boolean => model.numbers.size > 0
  run(model: Model, table: Real): void {
    const key = [...model.numbers.keys()][this.index % model.numbers.size] as string
    table.remove(table.find(key))
    expect(table.find(key)).toBe(-1)
    model.numbers.delete(key)
    model.slots.delete(key)
    check(model, table)
  }
  toString = (): string => `remove(${this.index})`
}

class Reserve implements fc.Command<Model, Real> {
  readonly label: string
  readonly number: number
  constructor(label: string, number: number) {
    this.label = label
    this.number = number
  }
  check = (model: Readonly<Model>): boolean => model.reserved.size < 3
  run(model: Model, table: Real): void {
    const slot = table.reserve(this.label)
    fill(table, slot, this.number)
    model.reserved.set(slot, this.number)
    check(model, table)
  }
  toString = (): string => `reserve(${JSON.stringify(this.label)})`
}

class Release implements fc.Command<Model, Real> {
  check = (model: Readonly<Model>): boolean => model.reserved.size > 0
  run(model: Model, table: Real): void {
    const slot = [...model.reserved.keys()][0] as number
    table.remove(slot)
    model.reserved.delete(slot)
    check(model, table)
  }
  toString = (): string => 'release()'
}

test('it is a map from keys to records, whatever the order of additions and removals', () => {
  const number = fc.integer({ min: 1, max: 1_000_000 })
  const key = fc.oneof(fc.constantFrom(...hostileKeys.filter((one) => one.length < 100)), anyKey)
  const commands = fc.commands(
    [
      fc.tuple(key, number).map(([one, value]) => new Add(one, value)),
      fc.tuple(fc.string(), number).map(([one, value]) => new Add(`key ${one}`, value)),
      fc.nat().map((index) => new Remove(index)),
      fc.tuple(key, number).map(([one, value]) => new Reserve(one, value)),
      fc.constant(new Release()),
    ],
    { size: '+1', maxCommands: 120 },
  )
  fc.assert(
    fc.property(commands, (list) => {
      const model: Model = { numbers: new Map(), slots: new Map(), reserved: new Map() }
      fc.modelRun(() => ({ model, real: new KeyTable(MOST) }), list)
    }),
    { numRuns: 60 },
  )
})

describe('memory', () => {
  test('slots are used again before new ones are made', () => {
    const table = new KeyTable(1_000)
    for (let round = 0; round < 50; round++) {
      const slots = Array.from({ length: 60 }, (_, i) => table.add(`${round} ${i}`))
      expect(table.end).toBeLessThanOrEqual(61)
      for (const slot of slots.slice(0, 59)) table.remove(slot)
      if (round > 0) table.remove(table.find(`${round - 1} 59`))
    }
  })

  test('it grows as it must, and shrinks when the last key has gone', () => {
    const table = new KeyTable(100_000)
    const small = table.fields.length
    const slots = Array.from({ length: 50_000 }, (_, i) => table.add(`key ${i}`))
    slots.forEach((slot, i) => {
      table.fields[baseOf(slot) + KNOWN] = i
    })
    expect(slots.every((slot, i) => table.find(`key ${i}`) === slot && table.fields[baseOf(slot) + KNOWN] === i)).toBe(true)
    expect(table.fields.length).toBeLessThan(50_000 * 12)
    for (let i = 0; i < 50_000; i++) table.remove(table.find(`key ${i}`))
    expect([table.size, table.end, table.fields.length]).toEqual([0, 0, small])
  })

  test('removing what is not there does nothing', () => {
    const table = new KeyTable(10)
    const slot = table.add('a')
    table.remove(slot)
    table.remove(slot)
    table.remove(5)
    expect([table.add('b'), table.add('c')].sort()).toEqual([0, 1])
  })
})

test('the fields that the request path reads by number lie where it looks', () => {
  expect([KNOWN, GATE, TAG, baseOf(1)]).toEqual([0, 1, 2, 5])
})
