import { describe, expect, test } from 'vitest'
import type { Cell, StorePolicy } from '../../src/store/contract.ts'
import { levelAt, spanOf } from '../../src/store/shapes/bucket.ts'
import { bucketCell, countInBucket, newBucketRecord } from '../../src/store/shapes/bucket-groups.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

/** 80 units, of which 2 drain in the time of a cell, and all in 40 cells. */
const policy: StorePolicy = { id: 'p', width: 100, cells: 60, limit: 80, hot: 40, ttl: 12_000, drain: 2 }

const at = (ordinal: number): Ordinal => ordinal as Ordinal
const group = (ordinal: number, taken: number, given = 0) => ({ ordinal, taken, given })
const cell = (ordinal: number, taken: number, level?: number): Cell => ({
  ordinal: at(ordinal),
  taken,
  given: 0,
  ...(level !== undefined && { level }),
})

describe('the level of a bucket', () => {
  const base = { ordinal: 100, level: 10 }

  test('drains between cells, never below zero', () => {
    const units = { base, groups: [group(103, 5, 1), group(120, 7)], floors: [] }
    expect(levelAt(units, 100, policy)).toBe(10)
    expect(levelAt(units, 102, policy)).toBe(6)
    expect(levelAt(units, 103, policy)).toBe(8)
    expect(levelAt(units, 119, policy)).toBe(0)
    expect(levelAt(units, 121, policy)).toBe(5)
  })

  test('is not below the levels that processes know, whose cells they include', () => {
    const units = { base, groups: [group(104, 5), group(106, 1)], floors: [{ ordinal: 104, level: 30 }] }
    expect(levelAt(units, 103, policy)).toBe(4)
    expect(levelAt(units, 104, policy)).toBe(30)
    expect(levelAt(units, 106, policy)).toBe(30 - 4 + 1)
    const lower = { ordinal: 105, level: 20 }
    expect(levelAt({ ...units, floors: [...units.floors, lower] }, 106, policy)).toBe(30 - 4 + 1)
  })

  test('remembers no more than its most', () => {
    const units = { base, groups: [group(101, 200), group(102, 5)], floors: [] }
    expect(levelAt(units, 102, policy, 100)).toBe(100)
    expect(levelAt(units, 103, policy)).toBe(8 + 200 - 2 + 5 - 2)
  })

  test('lasts as many cells as a full bucket needs to drain, at most those of the policy', () => {
    expect(spanOf(policy)).toBe(40)
    expect(spanOf({ ...policy, limit: 1_000 })).toBe(60)
    expect(spanOf({ ...policy, drain: 0 })).toBe(60)
  })
})

describe('the record of a bucket', () => {
  test('counts what each process sends once', () => {
    const bucket = newBucketRecord(at(100), policy)
    expect(countInBucket(bucket, 'a', [cell(100, 5)], at(100), policy)).toEqual({ before: 0, after: 5, units: 5 })
    expect(countInBucket(bucket, 'a', [cell(100, 5)], at(100), policy)).toEqual({ before: 5, after: 5, units: 0 })
    expect(countInBucket(bucket, 'b', [cell(100, 5)], at(100), policy)).toEqual({ before: 5, after: 10, units: 5 })
  })

  test('adds groups that are more than a span old to its level, and counts nothing older afterwards', () => {
    const bucket = newBucketRecord(at(100), policy)
    for (let ordinal = 100; ordinal <= 180; ordinal += 10) countInBucket(bucket, 'a', [cell(ordinal, 40)], at(ordinal), policy)
    expect(bucket.base).toEqual({ ordinal: 130, level: 40 + 3 * (40 - 20) })
    expect(countInBucket(bucket, 'b', [cell(125, 9)], at(180), policy).units).toBe(0)
    expect(countInBucket(bucket, 'b', [cell(135, 9)], at(180), policy).units).toBe(9)
  })

  test('forgets the debt above the most that the policy remembers', () => {
    const bucket = newBucketRecord(at(100), policy)
    const { after } = countInBucket(bucket, 'a', [cell(100, 200)], at(100), { ...policy, maxDebt: 20 })
    expect(after).toBe(100)
    expect(bucketCell(bucket, at(100), policy)).toEqual({ ordinal: 100, taken: 200, given: 0, level: 100 })
  })

  test('is raised to a level that a process knows', () => {
    const bucket = newBucketRecord(at(100), policy)
    expect(countInBucket(bucket, 'a', [cell(99, 3, 30)], at(100), policy).after).toBe(28)
    expect(countInBucket(bucket, 'b', [cell(100, 3)], at(100), policy).after).toBe(31)
  })
})
