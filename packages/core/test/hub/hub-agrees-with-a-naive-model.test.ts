import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Hub } from '../../src/hub/hub.ts'
import type { Cell, StorePolicy, SyncEntry } from '../../src/store/contract.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

const clock: Clock = {
  now: () => 1_000_000,
  monotonic: () => 5000,
  setTimeout: () => undefined,
  clearTimeout: () => undefined,
  defer: () => undefined,
}
const RUNNING = 1000
const fixed: StorePolicy = { id: 'fixed', width: 1000, cells: 1, limit: 10, hot: 3, ttl: 60_000 }
const sliding: StorePolicy = { id: 'sliding', width: 1000, cells: 4, limit: 10, hot: 3, ttl: 60_000 }

/** The highest counts that each process sent, per policy, key and cell. Sums are computed when they are read. */
class Model {
  readonly #said = new Map<string, Cell>()

  total(policy: StorePolicy, key: string, ordinal: number): Cell {
    const sum = { ordinal: ordinal as Ordinal, taken: 0, given: 0 }
    for (const node of ['a', 'b', 'c']) {
      const cell = this.#said.get(`${policy.id}/${key}/${ordinal}/${node}`)
      sum.taken += cell?.taken ?? 0
      sum.given += cell?.given ?? 0
    }
    return sum
  }

  exchange(node: string, { policy, key, cells }: SyncEntry): Cell[] {
    for (const { ordinal, taken, given } of cells) {
      const id = `${policy.id}/${key}/${ordinal}/${node}`
      const known = this.#said.get(id) ?? { taken: 0, given: 0 }
      this.#said.set(id, {
        ordinal,
        taken: Math.max(taken, known.taken),
        given: Math.max(given, known.given),
      })
    }
    if (policy.cells === 1) return cells.map(({ ordinal }) => this.total(policy, key, ordinal))
    const newest = Math.max(...cells.map(({ ordinal }) => ordinal))
    const found: Cell[] = []
    for (let ordinal = newest - policy.cells + 1; ordinal <= Math.max(newest, RUNNING); ordinal++) {
      const cell = this.total(policy, key, ordinal)
      if (cell.taken > 0 || cell.given > 0) found.push(cell)
    }
    return found
  }
}

test('random exchanges give what a naive model gives', () => {
  const cells = fc.uniqueArray(
    fc.record({
      ordinal: fc.integer({ min: RUNNING - 6, max: RUNNING + 2 }).map((ordinal) => ordinal as Ordinal),
      taken: fc.integer({ min: 0, max: 6 }),
      given: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 1, maxLength: 3, selector: ({ ordinal }) => ordinal },
  )
  const step = fc.record({
    node: fc.constantFrom('a', 'b', 'c'),
    entry: fc.record({
      policy: fc.constantFrom(fixed, sliding),
      key: fc.constantFrom('x', '__proto__'),
      cells,
    }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const hub = new Hub(clock)
      const model = new Model()
      for (const { node, entry } of steps) {
        const [result] = hub.exchange(node, { entries: [entry], blocks: [] }).results
        expect(result?.cells).toEqual(model.exchange(node, entry))
      }
    }),
    { numRuns: 500 },
  )
})
