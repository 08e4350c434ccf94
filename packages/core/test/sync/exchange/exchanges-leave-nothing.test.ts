import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { Batch } from '../../../src/counting/batch.ts'
import { type Flight, Flights } from '../../../src/sync/exchange/flights.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
const oldBytes = (): number => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0

test('exchanges that are over are gone with the next collections of young objects', () => {
  const flights = new Flights()
  const open: Flight[] = []
  const exchange = (now: number): void => {
    const batch = new Batch(200)
    for (let i = 0; i < 200; i++) batch.tickets.push({ taken: now + i } as never)
    open.push(flights.begin(batch, [], false, now))
    if (open.length > 3) flights.succeeded(open.shift() as Flight, now, false)
  }
  for (let i = 0; i < 400; i++) exchange(i)
  collect()
  const before = oldBytes()
  for (let i = 0; i < 2000; i++) {
    exchange(i)
    if (i % 20 === 0) collect({ type: 'minor' })
  }
  // The batches are more than 15 MB in total. A chain of tables would keep 10 MB of them, unless a full collection hides it.
  expect(oldBytes() - before).toBeLessThan(2_000_000)
})
