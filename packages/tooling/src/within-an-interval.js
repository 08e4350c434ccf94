// A setup file of every test. If a minute or an hour is about to end, the test waits, so that no interval of real time ends within it.
import { beforeEach } from 'vitest'

/** Milliseconds. No test begins in the `last` part of each `length`. Tests with shorter intervals are short themselves. */
const ENDS = [
  { length: 60_000, last: 2_000 },
  { length: 3_600_000, last: 15_000 },
]
// Kept here, because tests may replace it with a fake.
const { setTimeout } = globalThis

beforeEach(async () => {
  const now = Date.now()
  const waits = ENDS.map(({ length, last }) => ({ last, left: length - (now % length) })).filter(({ last, left }) => left <= last)
  if (waits.length > 0) await new Promise((resolve) => setTimeout(resolve, Math.max(...waits.map(({ left }) => left)) + 1))
})
