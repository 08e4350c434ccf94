import type { StorePolicy } from '@weir/core/sync'
import { expect, test } from 'vitest'
import { blockChange } from '../src/records/blocks.ts'

const MINUTE = 60_000
const policy: StorePolicy = { id: 'p', width: MINUTE, cells: 1, ttl: MINUTE, limit: 10 } as never

test.each(['lift', 'reset'] as const)(
  'a block that a %s ends is over at once, though the clock of the nodes stands still or goes back',
  (kind) => {
    let text: string | undefined
    const change = (change: object, now: number) => {
      const { writes, result } = blockChange({ policy, key: 'k', remaining: MINUTE, ...change } as never, 'name', now).decide([text])
      const [write] = writes
      if (typeof write === 'object') text = write.value
      return result
    }
    const now = 1_780_000_000_000
    expect(change({ kind: 'exceeded' }, now).remaining).toBe(MINUTE)
    expect(change({ kind, remaining: 0, epoch: now }, now).news?.remaining).toBe(0)
    expect(change({ kind: 'exceeded', epoch: now }, now - 0.001).remaining).toBeCloseTo(MINUTE, 1)
  },
)
