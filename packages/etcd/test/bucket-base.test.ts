import type { Ordinal, StorePolicy } from '@weir/core/sync'
import { describe, expect, test } from 'vitest'
import { type Base, Bucket, NO_BASE } from '../src/counts/bucket.ts'
import type { NodeCounts } from '../src/counts/node-counts.ts'

/** A bucket of 100 units. One unit drains per cell. */
const policy = { id: 'p', width: 1_000, cells: 100, limit: 100, hot: 50, ttl: 1e6, drain: 1 } as StorePolicy
const base: Base = { ...NO_BASE, ordinal: 990, heldUntil: 1_100 }

function node(...cells: readonly number[]): NodeCounts {
  return { epoch: 0, floor: undefined, cells: new Map(cells.map((ordinal) => [ordinal as Ordinal, { taken: 5, given: 0, rejected: 0 }])) }
}

function bucket(running: number, known: Base, ...nodes: readonly NodeCounts[]): Bucket {
  return new Bucket(policy, known, nodes, 0, (running + 0.5) * policy.width)
}

describe('the base of a bucket', () => {
  test('takes up what is more than a span old', () => {
    const one = bucket(1_300, base, node(1_010, 1_150, 1_300))
    expect(one.due(base, 1_290, 1_290)?.base).toMatchObject({ ordinal: 1_199, taken: 10, heldUntil: 1_100 })
  })

  test('after a silence takes up what was old before it, and then waits for a span', () => {
    const one = bucket(1_300, base, node(1_010, 1_150, 1_200, 1_300))
    expect(one.due(base, 1_200, 1_200)?.base).toMatchObject({ ordinal: 1_099, taken: 5, heldUntil: 1_400 })
  })

  test('after a silence of this node takes up no more, though another one has just written', () => {
    // Both processes were silent, and a third one may send cells of that time next.
    const one = bucket(1_300, base, node(1_000, 1_120, 1_190, 1_250, 1_290), node(1_190, 1_250, 1_290))
    expect(one.due(base, 1_290, 1_120)?.base).toMatchObject({ ordinal: 1_019, taken: 5 })
    expect(one.due(base, 1_290, undefined)).toBe(undefined)
  })

  test('waits a second time after a silence while it waits, and takes up what is two spans older', () => {
    const held = { ...base, heldUntil: 1_310 }
    const one = bucket(1_300, held, node(1_010, 1_050, 1_100, 1_240))
    expect(one.due(held, 1_240, 1_240)?.base).toMatchObject({ ordinal: 1_039, taken: 5, heldUntil: 1_400 })
    expect(one.due(held, 1_290, 1_290)).toBe(undefined)
  })

  test('waits no longer than a span, by the limit that holds and the clock that is right', () => {
    const held = { ...base, heldUntil: 90_000 }
    const one = bucket(1_300, held, node(1_010, 1_300))
    expect(one.due(held, 1_290, 1_290)?.base).toMatchObject({ ordinal: 990, heldUntil: 1_400 })
  })
})
