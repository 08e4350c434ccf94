import type { Link } from './link.ts'
import { pageFrom, type RangeOperation } from './operations.ts'
import { type Held, type PartReply, partOf, replyError } from './replies.ts'

/** Keys in one answer at most: each takes the event loop about 5 µs. */
export const PAGE = 1_000

/**
 * The pages of a range, which a transaction has begun to read. All of them are as things were at that transaction's revision.
 *
 * @param first the answer to the operation in that transaction; without one there are no pages
 * @throws as `Link.transact`: each page has the store's timeout for itself, and a link that is closed reads no further page. If etcd has
 *   compacted the revision meanwhile, the whole range has to be read anew.
 */
export async function* pagesOf(
  link: Link,
  operation: RangeOperation,
  first: PartReply | undefined,
  revision: number,
): AsyncGenerator<readonly Held[]> {
  for (let page = first; page !== undefined; ) {
    yield page.held
    const { next } = page
    if (next === undefined) return
    page = partOf(await link.transact([pageFrom(operation, next, PAGE, revision)]), 0)
    if (page.next !== undefined && !isAfter(page.next, next)) throw replyError('a page of a range that goes back')
  }
}

/** Whether a key comes later, in the order of bytes. Else a range could go on for ever. */
function isAfter(key: string, other: string): boolean {
  return Buffer.compare(Buffer.from(key, 'base64'), Buffer.from(other, 'base64')) > 0
}

/** All keys of such a range. */
export async function allOf(link: Link, operation: RangeOperation, first: PartReply, revision: number): Promise<readonly Held[]> {
  // Nearly always; then nothing is copied.
  if (first.next === undefined) return first.held
  const all: Held[] = []
  for await (const held of pagesOf(link, operation, first, revision)) for (const one of held) all.push(one)
  return all
}
