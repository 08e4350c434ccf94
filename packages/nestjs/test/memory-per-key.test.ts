import { holdingMore, memoryCases } from '@weir/tooling/memory-per-key'
import { expect, test } from 'vitest'

const PROGRAM = new URL('fixtures/memory-per-key.ts', import.meta.url)
/** Bytes, a record and a key of 257 characters included. */
const MOST = 600
// A guard runs where a route is known, so its key is the route's pattern and nothing of the request.
const CASES = memoryCases(() => '').filter(({ name }) => !name.startsWith("the adapter's default"))

test('a key holds at most 600 bytes, however long the strings of its request were', async () => {
  expect(await holdingMore(MOST, PROGRAM, [], CASES)).toEqual({})
}, 240_000)
