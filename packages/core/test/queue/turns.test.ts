import { expect, test } from 'vitest'
import { Turns } from '../../src/queue/turns.ts'

/** Turns until `end`, from room that came at 0. */
function taken(turns: Turns, requests: number, during: number, end: number): number[] {
  const times: number[] = []
  turns.begin(requests, during, 0)
  while (turns.next <= end) {
    if (turns.next === Number.NEGATIVE_INFINITY) break
    times.push(turns.next)
    turns.take()
  }
  turns.end(end)
  return times
}

test('all have their turns within the time, evenly', () => {
  expect(taken(new Turns(), 4, 100, 100)).toEqual([12.5, 37.5, 62.5, 87.5])
})

test('there is no turn to wait for when all have had theirs, and before there was any room', () => {
  const turns = new Turns()
  expect(turns.next).toBe(Number.NEGATIVE_INFINITY)
  turns.begin(1, 100, 0)
  turns.take()
  expect(turns.next).toBe(Number.NEGATIVE_INFINITY)
})

test('who had not waited long enough for a turn has it sooner the next time', () => {
  const turns = new Turns()
  // A third of a turn each time.
  const each = Array.from({ length: 30 }, () => taken(turns, 10, 300, 10).length)
  expect(each.reduce((sum, count) => sum + count, 0)).toBe(10)
  expect(Math.max(...each)).toBe(1)
})
