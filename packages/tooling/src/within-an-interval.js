// A setup file of every test: none begins just before a minute or an hour ends, and with it the intervals of real time that it counts in.
import { beforeEach } from 'vitest'

/** Of each of these lengths the last milliseconds are waited for: the shorter an interval is, the less time its tests take. */
const ENDS = [
  { length: 60_000, last: 2_000 },
  { length: 3_600_000, last: 15_000 },
]
// A test may have faked it.
const { setTimeout } = globalThis

beforeEach(async () => {
  const now = Date.now()
  const waits = ENDS.map(({ length, last }) => ({ last, left: length - (now % length) })).filter(({ last, left }) => left <= last)
  if (waits.length > 0) await new Promise((resolve) => setTimeout(resolve, Math.max(...waits.map(({ left }) => left)) + 1))
})
