import { manualClock } from '@weir/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { BEGIN, CELLS, decided, load, type Way } from './decided-in-time.ts'

const ALL: Way = { begin: () => vi.useFakeTimers({ now: BEGIN }), pass: (time) => vi.advanceTimersByTimeAsync(time) }
const AT_ONCE: Way = { ...ALL, pass: (time) => vi.advanceTimersByTime(time) }
const BESIDE_SOCKETS: Way = { ...AT_ONCE, begin: () => vi.useFakeTimers({ now: BEGIN, toFake: ['Date', 'hrtime'] }) }
const set = (way: Way): Way => ({ ...way, step: (time) => vi.setSystemTime(Date.now() + time) })

afterEach(() => {
  vi.useRealTimers()
})

test.each(CELLS)('decisions are the same by fake timers and by a clock of its own: $name', async (cell) => {
  await load(cell)
  const clock = manualClock()
  const expected = await decided(cell, { pass: (time) => clock.advance(time) }, clock)
  expect(expected).toMatch(/^111 11 1/)
  const ways = cell.coordination === 'local' ? { ALL, AT_ONCE, BESIDE_SOCKETS } : { ALL }
  for (const [name, way] of Object.entries(ways)) {
    expect(await decided(cell, way), name).toBe(expected)
    vi.useRealTimers()
  }
})

/** Cells whose decisions change if the wall clock is set, and the reasons. */
const FOLLOW_THE_WALL_CLOCK: Readonly<Record<string, string>> = {
  'sliding-counter, periodic': 'intervals go by the clock of the process, as published',
  'token-bucket, background': 'the clock of the store is set as well, and what is under way is counted a moment later',
}

test.each(CELLS)('time that a test sets does not pass: $name', async (cell) => {
  await load(cell)
  const [clock, stepped] = [manualClock(), manualClock()]
  const expected = await decided(cell, { pass: (time) => stepped.advance(time), step: (time) => stepped.step(time) }, stepped)
  if (FOLLOW_THE_WALL_CLOCK[cell.name] === undefined)
    expect(await decided(cell, { pass: (time) => clock.advance(time) }, clock)).toBe(expected)
  const ways = cell.coordination === 'local' ? { ALL, AT_ONCE, BESIDE_SOCKETS } : { ALL }
  for (const [name, way] of Object.entries(ways)) {
    expect(await decided(cell, set(way)), name).toBe(expected)
    vi.useRealTimers()
  }
})
