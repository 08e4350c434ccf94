import { expect, test } from 'vitest'
import type { BlockChange, StorePolicy } from '../../../src/store/contract.ts'
import { BlockChanges, changeAt, MOST_CHANGES, MOST_ENDLESS, type PendingBlock } from '../../../src/sync/exchange/block-changes.ts'

const RETRY = 200

function policy(id: string): StorePolicy {
  return { id, width: 1000, cells: 1, limit: 10, hot: 3, ttl: 2000 }
}

/** A change of a key's block, and the answers of the store that its owner received. */
function block(
  key: string,
  { kind = 'exceeded', lasts = 1000, of = 'a' }: { kind?: BlockChange['kind']; lasts?: number; of?: string } = {},
) {
  const answers: number[] = []
  const pending: PendingBlock = {
    change: { policy: policy(of), key, kind, remaining: lasts },
    blocks: { answered: (_change, remaining) => answers.push(remaining) },
    until: kind === 'lift' && lasts === 0 ? Number.POSITIVE_INFINITY : lasts,
  }
  return { pending, answers }
}

function queue(...pending: PendingBlock[]): BlockChanges {
  const changes = new BlockChanges()
  for (const one of pending) changes.add(one)
  return changes
}

test('the oldest come first, no more than are asked for', () => {
  const [a, b, c] = [block('a').pending, block('b').pending, block('c').pending]
  const changes = queue(a, b, c)
  expect(changes.take(0, 2)).toEqual([a, b])
  expect(changes.take(0, 2)).toEqual([c])
  expect(changes.waiting).toBe(false)
})

test('of the changes of one key only the newest is sent, in its turn', () => {
  const [first, other, newest] = [block('a').pending, block('b').pending, block('a', { kind: 'lift', lasts: 0 }).pending]
  expect(queue(first, other, newest).take(0, 9)).toEqual([other, newest])
})

test('keys of other policies, and keys that look like them, are keys of their own', () => {
  const changes = [block('b\u0000c', { of: 'a' }).pending, block('c', { of: 'b' }).pending, block('c', { of: 'a' }).pending]
  expect(queue(...changes).take(0, 9)).toEqual(changes)
})

test("the store's answer reaches the counter once, unless the block was lifted or the store knows of none", () => {
  const [kept, lifted, unknown] = [block('a'), block('b', { kind: 'lift', lasts: 0 }), block('c')]
  const changes = queue(kept.pending, lifted.pending, unknown.pending)
  const taken = changes.take(0, 9)
  changes.answered(taken, [700, 300, 0], 0, 10, RETRY)
  changes.answered(taken, [600, 300, 0], 0, 20, RETRY)
  expect([kept.answers, lifted.answers, unknown.answers]).toEqual([[700], [], []])
  expect(changes.waiting).toBe(false)
})

test('the answer to a change that a newer one has followed meanwhile does not count', () => {
  const [first, newest] = [block('a'), block('a')]
  const changes = queue(first.pending)
  const taken = changes.take(0, 9)
  changes.add(newest.pending)
  changes.answered(taken, [700], 0, 10, RETRY)
  expect(first.answers).toEqual([])
  changes.answered(changes.take(10, 9), [800], 10, 20, RETRY)
  expect(newest.answers).toEqual([800])
})

test('what did not reach the store is sent again', () => {
  const { pending, answers } = block('a')
  const changes = queue(pending)
  changes.failed(changes.take(0, 9), 10)
  expect(changes.waiting).toBe(true)
  changes.answered(changes.take(10, 9), [500], 10, 20, RETRY)
  expect(answers).toEqual([500])
})

test('not when a newer change of its key is under way', () => {
  const newest = block('a', { kind: 'lift', lasts: 0 }).pending
  const changes = queue(block('a').pending)
  const first = changes.take(0, 9)
  changes.add(newest)
  const second = changes.take(0, 9)
  changes.failed(first, 10)
  expect(changes.waiting).toBe(false)
  changes.failed(second, 10)
  expect(changes.take(10, 9)).toEqual([newest])
})

test('nor when its time is over, but a lift of a block that this node never knew of has no end', () => {
  const lift = block('b', { kind: 'lift', lasts: 0 }).pending
  const changes = queue(block('a', { lasts: 1000 }).pending, lift)
  changes.failed(changes.take(0, 9), 1000)
  expect(changes.take(1000, 9)).toEqual([lift])
})

test('what part of the store did not take waits, and all others with it', () => {
  const [rejected, later] = [block('a').pending, block('b').pending]
  const changes = queue(rejected)
  changes.answered(changes.take(0, 9), [undefined], 0, 10, RETRY)
  changes.add(later)
  expect(changes.notBefore).toBe(10 + RETRY)
  expect(changes.take(9 + RETRY, 9)).toEqual([])
  expect(changes.take(10 + RETRY, 9)).toEqual([rejected, later])
})

test('what is sent tells what remains of the time', () => {
  expect(changeAt(block('a', { lasts: 1000 }).pending, 400).remaining).toBe(600)
  // A change without remaining time would lift the block, so a change that has ended keeps a millisecond.
  expect(changeAt(block('a', { lasts: 1000 }).pending, 1000).remaining).toBe(1)
  expect(changeAt(block('a', { kind: 'lift', lasts: 0 }).pending, 400).remaining).toBe(0)
})

test('a block whose time is over before the store could be told goes at once, and so does the lift of one', () => {
  const [short, long] = [block('a', { lasts: 1_000 }).pending, block('b', { lasts: 5_000 }).pending]
  const lift = { ...block('c', { kind: 'lift', lasts: 1 }).pending, until: 1_000 }
  expect(queue(short, long, lift).take(1_000, 9)).toEqual([long])
})

test('while the store is unavailable, changes that are over leave nothing behind', () => {
  const changes = new BlockChanges()
  let most = 0
  for (let now = 0; now < 100_000; now += 10) {
    changes.add({ ...block(`${now}`).pending, until: now + 1_000 })
    changes.limit(now)
    most = Math.max(most, changes.size)
  }
  // At most a hundred changes are valid at a time.
  expect(most).toBeLessThanOrEqual(202)
})

test('the newest lifts of blocks that this node never knew of are kept, and none of others', () => {
  const changes = queue(block('block', { kind: 'set', lasts: 1e9 }).pending)
  for (let i = 0; i < 5_000; i++) {
    changes.add(block(`${i}`, { kind: 'lift', lasts: 0 }).pending)
    expect(changes.limit(i)).toBe(false)
  }
  expect(changes.size).toBeLessThanOrEqual(1.25 * MOST_ENDLESS + 2)
  const keys = changes.take(0, 9_999).map(({ change }) => change.key)
  expect(keys.slice(-MOST_ENDLESS)).toEqual(Array.from({ length: MOST_ENDLESS }, (_, i) => `${5_000 - MOST_ENDLESS + i}`))
  expect(keys[0]).toBe('block')
})

test('of too many changes those go first that clients can cause, then the oldest', () => {
  const changes = new BlockChanges()
  for (let i = 0; i < 100; i++) changes.add(block(`by hand ${i}`, { kind: 'set', lasts: 1e9 }).pending)
  let dropped = false
  for (let i = 0; i < MOST_CHANGES; i++) {
    changes.add(block(`client ${i}`, { lasts: 1e9 }).pending)
    dropped = changes.limit(0) || dropped
  }
  expect([dropped, changes.size <= MOST_CHANGES]).toEqual([true, true])
  const keys = changes.take(0, MOST_CHANGES).map(({ change }) => change.key)
  expect([keys[0], keys[99]]).toEqual(['by hand 0', 'by hand 99'])
  expect(keys.at(-1)).toBe(`client ${MOST_CHANGES - 1}`)
})
