import { expect, test } from 'vitest'
import { BucketKey } from '../../src/counting/bucket/key.ts'
import { BucketReservations } from '../../src/counting/bucket/reservations.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

test('units that are reserved while a sync is in flight are sent after its reply, because no other sync may be due', () => {
  const wanted: number[] = []
  const meter = { wantExchange: (_slot: number, at: number) => wanted.push(at) }
  const reservations = new BucketReservations(meter as never, {} as never, {} as never)
  const key = new BucketKey(undefined)
  const confirmed: unknown[] = []
  key.unconfirmed = [{ units: 1, ordinal: 7 as Ordinal, at: 110, confirmed: (level) => confirmed.push(level) }]

  reservations.answered(3, key, { ordinal: 7 as Ordinal, taken: 5, given: 0, level: 5 }, 100, 140)

  expect(wanted).toEqual([140])
  expect(confirmed).toEqual([])
  expect(key.unconfirmed).toHaveLength(1)
})
