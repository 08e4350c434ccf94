import { describe, expect, test } from 'vitest'
import type { StorePolicy } from '../../src/store/contract.ts'
import { bucketNews } from '../../src/store/shapes/bucket.ts'
import { slidingNews } from '../../src/store/shapes/sliding.ts'
import { windowNews } from '../../src/store/shapes/window.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

const policy: StorePolicy = { id: 'p', width: 1_000, cells: 1, limit: 100, hot: 50, ttl: 2_000 }
const NOTHING = { announce: false, hot: false }
const NEWS = { announce: true, hot: false }
const HOT = { announce: true, hot: true }

describe('news of a fixed window', () => {
  const write = (before: number, after: number, wasHot = false, now = 7_500) =>
    windowNews({ ordinal: 7 as Ordinal, before, after, wasHot }, policy, now)

  test('is the write by which the total passes a mark', () => {
    expect(write(48, 49)).toEqual(NOTHING)
    expect(write(49, 50)).toEqual(HOT)
    expect(write(50, 51)).toEqual(NOTHING)
    expect(write(99, 100)).toEqual(NEWS)
    expect(write(100, 101)).toEqual(NOTHING)
  })

  test('does not contain a passed mark twice after a refund', () => {
    expect(write(49, 50, true)).toEqual(NOTHING)
  })

  test('is a twentieth of the limit near it, until the window is over', () => {
    expect(write(60, 64)).toEqual(NOTHING)
    expect(write(60, 65)).toEqual(NEWS)
    expect(write(60, 65, true, 8_000)).toEqual(NOTHING)
  })
})

describe('news of a sliding window', () => {
  const sliding = { ...policy, cells: 10 }
  const key = () => ({ announcedAt: Number.NEGATIVE_INFINITY, hotUntil: Number.NEGATIVE_INFINITY })
  const grown = (before: number, after: number, opened = false) => ({ before, after, units: after - before, opened })

  test('is hot once in a window', () => {
    const one = key()
    expect(slidingNews(grown(49, 50), one, sliding, 0)).toEqual(HOT)
    expect(slidingNews(grown(49, 50), one, sliding, 9_000)).toEqual(NOTHING)
    expect(slidingNews(grown(51, 52, true), one, sliding, 10_000)).toEqual(HOT)
  })

  test('includes a window that is nearly full', () => {
    const one = { ...key(), hotUntil: 20_000 }
    expect(slidingNews(grown(96, 97), one, sliding, 0)).toEqual(NOTHING)
    expect(slidingNews(grown(97, 98), one, sliding, 0)).toEqual(NEWS)
  })

  test('repeats a reached limit every 10 ms', () => {
    const one = { ...key(), hotUntil: 20_000 }
    expect(slidingNews(grown(99, 100), one, sliding, 0)).toEqual(NEWS)
    expect(slidingNews(grown(100, 101), one, sliding, 9)).toEqual(NOTHING)
    expect(slidingNews(grown(101, 102), one, sliding, 10)).toEqual(NEWS)
  })

  test('is never a refund', () => {
    expect(slidingNews({ before: 99, after: 100, units: 0, opened: true }, key(), sliding, 0)).toEqual(NOTHING)
  })
})

describe('news of a bucket', () => {
  const bucket = { ...policy, cells: 100, drain: 2 }
  const START = 7_000

  test('compares the level now, not the level at the start of the cell', () => {
    const one = { announcedAt: Number.NEGATIVE_INFINITY, hot: true }
    expect(bucketNews({ before: 99, after: 100, units: 1 }, one, bucket, START, 0)).toEqual(NEWS)
    expect(bucketNews({ before: 99, after: 100, units: 1 }, one, bucket, START + 600, 100)).toEqual(NOTHING)
  })

  test('is hot again only after its level was below half of the mark', () => {
    const one = { announcedAt: Number.NEGATIVE_INFINITY, hot: false }
    expect(bucketNews({ before: 49, after: 50, units: 1 }, one, bucket, START, 0)).toEqual(HOT)
    expect(bucketNews({ before: 49, after: 50, units: 1 }, one, bucket, START, 0)).toEqual(NOTHING)
    expect(bucketNews({ before: 24, after: 25, units: 1 }, one, bucket, START, 0)).toEqual(NOTHING)
    expect(bucketNews({ before: 49, after: 50, units: 1 }, one, bucket, START, 0)).toEqual(HOT)
  })

  test('repeats a full bucket every 10 ms', () => {
    const one = { announcedAt: Number.NEGATIVE_INFINITY, hot: true }
    expect(bucketNews({ before: 99, after: 100, units: 1 }, one, bucket, START, 0)).toEqual(NEWS)
    expect(bucketNews({ before: 100, after: 101, units: 1 }, one, bucket, START, 9)).toEqual(NOTHING)
    expect(bucketNews({ before: 100, after: 101, units: 1 }, one, bucket, START, 10)).toEqual(NEWS)
  })
})
