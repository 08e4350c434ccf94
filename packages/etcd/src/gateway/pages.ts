import type { Link } from './link.ts'
import { pageFrom, type RangeOperation } from './operations.ts'
import { type Held, type PartReply, partOf, replyError } from './replies.ts'

/** The most keys of one reply. Each key takes about 5 µs of the event loop. */
export const PAGE = 1_000

/**
 * The pages of a range whose first page a transaction has read. All pages are from that transaction's revision.
 *
 * @param first the reply to the operation in that transaction. Without it there are no pages
 * @throws the errors of `Link.transact`. Each page has the full timeout, and a closed link reads no further page. If etcd has compacted the
 * revision meanwhile, the whole range must be read again.
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

/** Returns whether a key comes later, in the order of bytes. Without this check a range could go on forever. */
function isAfter(key: string, other: string): boolean {
  return Buffer.compare(Buffer.from(key, 'base64'), Buffer.from(other, 'base64')) > 0
}

/** All keys of such a range. */
export async function allOf(link: Link, operation: RangeOperation, first: PartReply, revision: number): Promise<readonly Held[]> {
  // The usual case, which needs no copy.
  if (first.next === undefined) return first.held
  const all: Held[] = []
  for await (const held of pagesOf(link, operation, first, revision)) for (const one of held) all.push(one)
  return all
}
