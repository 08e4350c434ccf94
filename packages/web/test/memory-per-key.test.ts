import { holdingMore, memoryCases } from '@weir/tooling/memory-per-key'
import { expect, test } from 'vitest'

const PROGRAM = new URL('fixtures/memory-per-key.ts', import.meta.url)
/** The most bytes per key, including its record and a key of 257 characters. */
const MOST = 600

test('a key holds at most 600 bytes, however long the strings of its request were', async () => {
  const cases = memoryCases(() => '')
  expect(await holdingMore(MOST, PROGRAM, [], cases)).toEqual({})
}, 240_000)
