import { memoryCases, memoryPerKey } from '@weir/tooling/memory-per-key'
import { expect, test } from 'vitest'
import { FRAMEWORKS } from './frameworks.ts'

const PROGRAM = new URL('fixtures/memory-per-key.ts', import.meta.url)
const CASES = memoryCases(() => '')
/** Bytes, a record and a key of 257 characters included. */
const MOST = 600

test.each(FRAMEWORKS.map(([name]) => name))(
  'a key holds at most 600 bytes, however long the strings of its request were: %s',
  async (name) => {
    const bytes = await memoryPerKey(PROGRAM, [name], CASES)
    expect(Object.entries(bytes).filter(([, held]) => held > MOST)).toEqual([])
  },
  120_000,
)
