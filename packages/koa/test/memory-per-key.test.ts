import { holdingMore, memoryCases } from '@weir/tooling/memory-per-key'
import { expect, test } from 'vitest'
import { FRAMEWORKS } from './frameworks.ts'

const PROGRAM = new URL('fixtures/memory-per-key.ts', import.meta.url)
const CASES = memoryCases(() => '')
/** The most bytes per key, including its record and a key of 257 characters. */
const MOST = 600

// The code that makes keys is the same for all versions. Only the strings of their requests may differ.
const SOME = CASES.filter(({ name }) => ['a long header', 'a forwarded address'].includes(name))

test.each(FRAMEWORKS.map(([name], i) => [name, i === 0 ? CASES : SOME] as const))(
  'a key holds at most 600 bytes, however long the strings of its request were: %s',
  async (name, cases) => {
    expect(await holdingMore(MOST, PROGRAM, [name], cases)).toEqual({})
  },
  240_000,
)
