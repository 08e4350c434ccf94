import { describe, expect, test } from 'vitest'
import { leadOf, MOST_TOGETHER, mostAsked, ownPart, requestsAtOnce, unitsAhead } from '../../src/queue/call-size.ts'

describe('the part of one process', () => {
  test('is all of it without others, and together less than all with others', () => {
    expect(ownPart(60, 1)).toBe(60)
    for (const processes of [2, 3, 10]) expect(processes * ownPart(60, processes)).toBeLessThan(60 * 0.7)
  })
})

describe('units reserved ahead', () => {
  const each = 10
  const lead = leadOf(2, each)

  test('last until the next call is answered', () => {
    expect(lead).toBe(5 + 4 + 10)
    expect(unitsAhead(0, 0, each, 100) * each).toBe(100)
  })
  test('last for 40 ms, however short the way to the store is', () => {
    expect(unitsAhead(0, 0, each, lead) * each).toBe(40)
  })
  test('are an eighth of a long line, and the own part of what is free', () => {
    expect(unitsAhead(0, 800, each, lead)).toBe(100)
    expect(unitsAhead(300, 800, each, lead)).toBe(300)
  })
})

describe('requests in one call', () => {
  test.each([
    ['the own part', { asked: 0, granted: undefined }, 7, 50, 7],
    ['a third of the last granted ones, where requests take turns', { asked: 0, granted: 12 }, 7, 50, 4],
    ['no more than fit beside those at the store', { asked: 3, granted: undefined }, 7, 5, 2],
    ['one at least', { asked: 5, granted: 0 }, 0, 5, 1],
    ['a hundred at most', { asked: 0, granted: undefined }, 1e6, 1e6, MOST_TOGETHER],
  ])('%s', (_, demand, part, fit, expected) => {
    expect(requestsAtOnce(demand, part, fit)).toBe(expected)
  })
})

describe('requests at the store at a time', () => {
  test.each([
    ['16, if each needs its own call', undefined, false, 100, 16],
    ['4, if a call can contain several', undefined, true, 100, 4],
    ['4, while turns get something', 3, true, 100, 4],
    ['16, while turns get nothing', 0, true, 100, 16],
    ['no more than there is capacity for', undefined, false, 2, 2],
    ['one, without capacity', undefined, true, 0, 1],
  ])('%s', (_, granted, together, remaining, expected) => {
    expect(mostAsked({ asked: 0, granted }, together, remaining)).toBe(expected)
  })
})
