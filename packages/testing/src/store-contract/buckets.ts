import assert from 'node:assert/strict'
import type { StorePolicy, SyncResult } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import { bucketPolicy, type ContractNode, cell, defined } from './context.ts'

const policy = bucketPolicy()

function levelOf({ cells }: SyncResult): number {
  assert.equal(cells.length, 1, 'a bucket has one cell')
  const level = cells[0]?.level
  assert.ok(level !== undefined, 'a bucket has a level')
  return level
}

/** A policy for requests that report their time. Its cells are short, so that these times are within the clock error that stores accept. */
const told = bucketPolicy({ width: 600_000, ttl: 12_000_000 })

/** The level after a process sent units of cells and reported the time, so that the duration of the case makes no difference. */
async function levelAt(node: ContractNode, of: StorePolicy, at: number, units: readonly (readonly [number, number])[]): Promise<number> {
  const cells = units.map(([ordinal, taken]) => cell(ordinal, taken))
  return levelOf(defined((await node.sync({ time: (at + 0.5) * of.width, entries: [{ policy: of, key: 'k', cells }] })).results[0]))
}

/** Levels of buckets. */
export const bucketCases: readonly ContractCase[] = [
  {
    title: 'a bucket holds what all nodes have taken, less what ran out since',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      assert.equal(levelOf(await a.count(policy, 'k', [cell(now - 2, 30)])), 10)
      const result = await b.count(policy, 'k', [cell(now - 1, 5), cell(now, 7)])
      assert.deepEqual(result.cells, [{ ordinal: now, taken: 42, given: 0, level: 22 }])
      assert.deepEqual((await b.count(policy, 'k', [cell(now, 0)])).cells, result.cells)
      assert.equal(levelOf(await b.count(policy, 'other', [cell(now, 0)])), 0)
    },
  },
  {
    title: 'nodes that write at the same time are each told of a level of its own, so that no two find the same place in the bucket',
    async run(context) {
      const nodes = await context.nodes(4)
      const now = context.ordinal(policy)
      const results = await Promise.all(nodes.map((node) => node.count(policy, 'k', [cell(now, 3)])))
      assert.deepEqual(
        results.map(levelOf).sort((a, b) => a - b),
        [3, 6, 9, 12],
      )
    },
  },
  {
    title: 'counts of a bucket are idempotent, and refunds lower its level',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      await a.count(policy, 'k', [cell(now, 10)])
      await a.count(policy, 'k', [cell(now, 25, 4)])
      await a.count(policy, 'k', [cell(now, 10)])
      await a.count(policy, 'k', [cell(now, 25, 2)])
      assert.deepEqual((await b.count(policy, 'k', [cell(now, 1)])).cells, [{ ordinal: now, taken: 26, given: 4, level: 22 }])
    },
  },
  {
    title: 'what ran out while a bucket was empty is not made up for, in whatever order counts come',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      await a.count(policy, 'k', [cell(now, 15)])
      assert.equal(levelOf(await b.count(policy, 'k', [cell(now - 4, 12)])), 15)
    },
  },
  {
    title: 'a debt beyond what the policy remembers is forgotten',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const lenient = bucketPolicy({ maxDebt: 20 })
      const now = context.ordinal(lenient)
      assert.equal(levelOf(await a.count(lenient, 'k', [cell(now, 500)])), 120)
      assert.equal(levelOf(await a.count(lenient, 'k', [cell(now, 500)])), 120)
      assert.equal(levelOf(await b.count(lenient, 'k', [cell(now, 3)])), 120)
    },
  },
  {
    title: 'a reset empties a bucket, and what was counted before it counts no more',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      await a.count(policy, 'k', [cell(now, 50)])
      const epoch = Math.floor(context.clock.now())
      await b.reset(policy, 'k', epoch)
      const rejected = await a.count(policy, 'k', [cell(now, 55)])
      assert.deepEqual([rejected.epoch, levelOf(rejected)], [epoch, 0])
      assert.equal(levelOf(await b.countSince(policy, 'k', 3, epoch)), 3)
    },
  },
  {
    title: 'what a node knows to be in a bucket is taken up where it was lost, and nothing counts twice',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      assert.equal(levelOf(await a.count(policy, 'k', [{ ...cell(now - 1, 0), level: 70 }])), 60)
      // The level of 70 already includes earlier units, but no later ones.
      assert.equal(levelOf(await b.count(policy, 'k', [cell(now - 1, 20)])), 60)
      assert.equal(levelOf(await b.count(policy, 'k', [cell(now - 1, 20), cell(now, 3)])), 63)
      // Other processes may have confirmed fewer units.
      assert.equal(levelOf(await b.count(policy, 'k', [{ ...cell(now, 3), level: 50 }])), 63)
      assert.deepEqual((await a.count(policy, 'k', [cell(now, 0)])).cells, [{ ordinal: now, taken: 23, given: 0, level: 63 }])
    },
  },
  {
    title: 'units that were rejected are told, count once, and are in no bucket',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      await a.count(policy, 'k', [{ ...cell(now, 5), rejected: 8 }])
      await a.count(policy, 'k', [{ ...cell(now, 5), rejected: 8 }])
      const { cells } = await b.count(policy, 'k', [{ ...cell(now, 0), rejected: 30 }])
      assert.deepEqual(cells, [{ ordinal: now, taken: 5, given: 0, level: 5, rejected: 38 }])
    },
  },
  {
    title: 'a bucket that is seldom written keeps no units that ran out long ago, by whatever rate they would run out now',
    async run(context) {
      const node = await context.node()
      const quick = bucketPolicy({ width: 20, cells: 1_000, limit: 1, drain: 1, ttl: 40_000 })
      for (let i = 0; i < 8; i++) {
        await node.count(quick, 'k', [cell(context.ordinal(quick), 1)])
        // The pause is longer than a span, so that each write comes after a silence.
        await context.pass(50)
      }
      const [told] = (await node.count({ ...quick, drain: 1e-6 }, 'k', [cell(context.ordinal(quick), 1)])).cells
      assert.equal(told?.taken, 9)
      assert.ok((told?.level ?? 9) <= 5, `${told?.level} units are in the bucket`)
    },
  },
  {
    title: 'after a silence a bucket takes up what nodes allowed in it, each in its turn',
    async run(context) {
      const [a, b, c] = (await context.nodes(3)) as [ContractNode, ContractNode, ContractNode]
      const now = context.ordinal(told)
      assert.equal(await levelAt(a, told, now - 30, [[now - 30, 100]]), 100)
      const missed = [-25, -20, -15, -10, -5].map((at) => [now + at, 20] as const)
      for (const node of [a, b]) await levelAt(node, told, now, missed)
      await levelAt(c, told, now + 1, missed)
      // 100 and 3 times 100, less 31 times 10.
      assert.equal(await levelAt(a, told, now + 1, [[now + 1, 0]]), 90)
    },
  },
  {
    title: 'units of a bucket wait for those of a silence no longer than a span, by whatever limit was there before',
    async run(context) {
      const node = await context.node()
      const quick = { ...told, limit: 10 }
      const now = context.ordinal(told)
      await levelAt(node, { ...told, drain: 1 }, now - 20, [[now - 20, 1]])
      for (let at = now - 18; at < now - 1; at += 2) await levelAt(node, quick, at, [[at, 1]])
      const level = await levelAt(node, { ...quick, drain: 1e-6 }, now - 1, [[now - 1, 1]])
      assert.ok(level <= 5, `${level} units are in the bucket`)
    },
  },
  {
    title: 'a bucket is announced when it is hot and when it is full, and handed to a node that starts',
    needs: ['announcements'],
    async run(context) {
      const limited = bucketPolicy({ hot: 50 })
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.eventually(async () => void (await b.beat(undefined, [limited])))
      const now = context.ordinal(limited)
      const levels = (of?: string): number[] =>
        b.announcements.flatMap((one) =>
          one.type === 'total' && (of === undefined || one.key === of) ? [one.cells[0]?.level ?? Number.NaN] : [],
        )
      let key = 0
      await context.eventually(async () => {
        await a.count(limited, `probe ${key++}`, [cell(now, 100)])
        await context.pass(20)
        assert.ok(levels().length > 0, 'nothing is announced')
      })
      await a.count(limited, 'k', [cell(now, 48)])
      await a.count(limited, 'k', [cell(now, 62)])
      await a.count(limited, 'k', [cell(now, 64)])
      await a.count(limited, 'k', [cell(now, 120)])
      await context.eventually(() => assert.deepEqual(levels('k'), [62, 120]))
      const starting = await context.node()
      const { hot } = await starting.beat(undefined, [limited])
      assert.deepEqual(
        hot.filter((one) => one.key === 'k').map(({ cells }) => cells[0]?.level),
        [120],
      )
    },
  },
]
