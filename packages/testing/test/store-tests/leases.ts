import { type Store, systemClock } from '@weir/core'
import { grantLease, type LeaseRecord, newLeaseRecord } from '@weir/core/leases'
import { HELD, type LeaseAsk, type Ordinal, type StorePolicy, type SyncEntry } from '@weir/core/sync'
import fc from 'fast-check'
import { expect } from 'vitest'

const INTERVAL = 86_400_000
const policy: StorePolicy = { id: 'p', width: INTERVAL, cells: 1, limit: 20, hot: Number.POSITIVE_INFINITY, ttl: 2 * INTERVAL }

/** All numbers that a process may send, in any order: late, doubled, contradicting each other. */
const asks = fc.array(
  fc.record({
    node: fc.nat(2),
    incarnation: fc.nat(1),
    seq: fc.nat(12),
    granted: fc.nat(12),
    returned: fc.nat(8),
    taken: fc.oneof(fc.nat(12), fc.constant(2.5)),
    given: fc.nat(3),
    cleared: fc.nat(4),
    epoch: fc.constantFrom(0, 0, 0, 5, 9),
    first: fc.nat(4),
    waiting: fc.nat(6),
    ahead: fc.nat(15),
    limit: fc.constantFrom(20, 20, 20, 8),
    nodes: fc.integer({ min: 1, max: 3 }),
    later: fc.nat(300),
    open: fc.option(
      fc.array(fc.record({ after: fc.integer({ min: -100, max: 900 }), back: fc.integer({ min: -3, max: 5 }) }), { maxLength: 3 }),
      {
        nil: undefined,
      },
    ),
  }),
  { minLength: 1, maxLength: 25 },
)

/** Checks that a store grants leases like the model, step by step, for an interval or for slots. @throws the difference */
export async function grantsAsTheModel(
  store: Store,
  of: 'interval' | 'none',
  { runs, within }: { readonly runs: number; readonly within?: number },
): Promise<void> {
  const nodes = [0, 1, 2].map((i) => store.open({ id: `node-${i}`, clock: systemClock, announced: () => {} }))
  let run = 0
  const property = fc.asyncProperty(asks, async (steps) => {
    const key = `${of} ${++run}`
    const record: LeaseRecord = newLeaseRecord()
    const start = Math.floor(Date.now() / INTERVAL) * INTERVAL + 1_000_000
    let time = start
    for (const { node, first, waiting, ahead, later, open, ...counts } of steps) {
      time += later
      const all = counts.granted + Math.max(waiting, 0)
      const ask: LeaseAsk = {
        ...counts,
        ordinal: of === 'none' ? HELD : (Math.floor(start / INTERVAL) as Ordinal),
        least: waiting > 0 ? counts.granted + Math.min(first, waiting) : counts.granted,
        waiting: all,
        upTo: all + ahead,
        early: 1_000,
        lifetime: 400,
        ...(open && store.reserves === true && { open: open.map(({ after, back }) => ({ due: time + after, back })) }),
      }
      const entry: SyncEntry = { policy, key, cells: [], lease: ask }
      const reply = await nodes[node]?.sync({ entries: [entry], blocks: [], time })
      const told = reply?.results[0]?.lease
      if (told === undefined) throw new Error('no answer')
      // Time passes while the call is in flight.
      const { reply: expected } = grantLease(record, `node-${node} ${ask.incarnation}`, ask, told.now)
      expect(told).toEqual(expected)
    }
  })
  await fc.assert(property, { numRuns: runs, ...(within !== undefined && { interruptAfterTimeLimit: within }) })
  await Promise.all(nodes.map((connection) => connection.close()))
}
