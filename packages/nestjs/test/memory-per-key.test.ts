import { holdingMore, memoryCases } from '@weir/tooling/memory-per-key'
import { expect, test } from 'vitest'

const PROGRAM = new URL('fixtures/memory-per-key.ts', import.meta.url)
/** The most bytes per key, including its record and a key of 257 characters. */
const MOST = 600
// A guard runs after routing, so the default key is the route's pattern and contains no string of the request.
const CASES = memoryCases(() => '').filter(({ name }) => !name.startsWith("the adapter's default"))

test('a key holds at most 600 bytes, however long the strings of its request were', async () => {
  expect(await holdingMore(MOST, PROGRAM, [], CASES)).toEqual({})
}, 240_000)
