import { expect, test } from 'vitest'
import type { Link } from '../src/gateway/link.ts'
import { range } from '../src/gateway/operations.ts'
import { allOf } from '../src/gateway/pages.ts'
import type { PartReply } from '../src/gateway/replies.ts'

const MOST = 20
const page = (name: string | undefined): PartReply => ({
  held: [],
  next: name === undefined ? undefined : Buffer.from(name).toString('base64'),
})

/** Reads a range whose later pages repeat this list endlessly. */
async function read(
  first: string,
  ...others: readonly (string | undefined)[]
): Promise<{ readonly asked: number; readonly error: unknown }> {
  let asked = 0
  const transact = async () => {
    if (asked === MOST) throw new Error('for ever')
    return { revision: 5, succeeded: true, parts: [page(others[asked++ % others.length])] }
  }
  const error = await allOf({ transact } as unknown as Link, range('weir/', 1), page(first), 5).then(
    () => undefined,
    (why: unknown) => why,
  )
  return { asked, error }
}

test.each([
  ['one page again and again', ['b', 'b'], 1],
  ['two pages in turn', ['a', 'b', 'a'], 2],
  ['a page before the first', ['b', 'a'], 1],
] as const)('%s ends the range with an error', async (_, [first, ...others], asked) => {
  expect(await read(first, ...others)).toEqual({ asked, error: expect.objectContaining({ code: 'WEIR_STORE_REPLY' }) })
})

test('keys are in the order of their bytes, not of their base64', async () => {
  expect(await read('weir/\u0001', 'weir/>', 'weir/>?', 'weir/é', undefined)).toEqual({ asked: 4, error: undefined })
})
