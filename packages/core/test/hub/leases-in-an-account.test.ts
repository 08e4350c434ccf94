import { expect, test } from 'vitest'
import { Account } from '../../src/hub/account.ts'
import { Hub } from '../../src/hub/hub.ts'
import type { LeaseAsk, Ordinal, StorePolicy } from '../../src/sync/index.ts'
import { systemClock } from '../../src/time/clock.ts'

test('the open reservations of leases are paid by the account, and are free again when the interval ends', () => {
  let time = 1_800_000_000_000
  const hub = new Hub({ ...systemClock, now: () => time, monotonic: () => time })
  const account = new Account(2 ** 20)
  const policy: StorePolicy = { id: 'p', width: 60_000, cells: 1, limit: 1_000_000, hot: 5, ttl: 120_000 }
  const ordinal = Math.floor(time / policy.width) as Ordinal
  const ask = (node: string, reservations: number): boolean => {
    const lease: LeaseAsk = {
      ...{ ordinal, incarnation: 0, seq: 1, granted: 0, returned: 0, taken: 0, given: 0, cleared: 0, epoch: 0 },
      ...{ least: 1, waiting: 1, upTo: 1, limit: policy.limit, nodes: 1, early: 1_000, lifetime: 4_000 },
      open: Array.from({ length: reservations }, (_, i) => ({ due: time + 60_000 + i, back: 1 })),
    }
    return hub.exchange(node, { entries: [{ policy, key: 'k', cells: [], lease }], blocks: [] }, account).results[0] !== undefined
  }
  let accepted = 0
  while (ask(`node-${accepted}`, 64)) accepted++
  // A megabyte is enough for so many, each with 64 objects.
  expect(accepted).toBeGreaterThan(100)
  expect(accepted).toBeLessThan(300)
  const { held } = account
  expect(ask('node-0', 64), 'the same ones cost nothing').toBe(true)
  expect(ask('node-0', 0)).toBe(true)
  expect(ask('node-0', 64)).toBe(true)
  expect(account.held).toBe(held)
  time += 3 * policy.width
  expect(hub.size).toBe(0)
  expect(account.held).toBe(0)
})
