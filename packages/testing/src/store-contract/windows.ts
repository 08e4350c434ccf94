import assert from 'node:assert/strict'
import type { ContractCase } from './case.ts'
import { type ContractNode, cell, net, slidingPolicy } from './context.ts'

const policy = slidingPolicy()

/** Totals of sliding windows. */
export const windowCases: readonly ContractCase[] = [
  {
    title: 'a sliding window hands out its cells that are not empty, oldest first',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      await a.count(policy, 'k', [cell(now, 5), cell(now - 2, 3, 1)])
      await b.count(policy, 'k', [cell(now - 3, 2)])
      const { cells } = await b.count(policy, 'k', [cell(now, 0)])
      assert.deepEqual(cells, [cell(now - 3, 2), cell(now - 2, 3, 1), cell(now, 5)])
    },
  },
  {
    title: 'cells that the window has left count no more',
    async run(context) {
      const node = await context.node()
      const now = context.ordinal(policy)
      await node.count(policy, 'k', [cell(now - 4, 9), cell(now - 3, 2)])
      assert.deepEqual((await node.count(policy, 'k', [cell(now, 1)])).cells, [cell(now - 3, 2), cell(now, 1)])
    },
  },
  {
    title: 'cells of a sliding window are idempotent each for itself',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const now = context.ordinal(policy)
      await a.count(policy, 'k', [cell(now - 1, 4)])
      await a.count(policy, 'k', [cell(now - 1, 6, 2), cell(now, 1)])
      await a.count(policy, 'k', [cell(now - 1, 4)])
      await a.count(policy, 'k', [cell(now, 1), cell(now - 1, 6, 1)])
      await b.count(policy, 'k', [cell(now, 2)])
      assert.deepEqual((await b.count(policy, 'k', [cell(now, 2)])).cells, [cell(now - 1, 6, 2), cell(now, 3)])
    },
  },
  {
    title: 'a window is announced when it is nearly full and when it is full, and again when units still come, but not at once',
    needs: ['announcements'],
    async run(context) {
      const limited = slidingPolicy({ limit: 200 })
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.eventually(async () => void (await b.beat(undefined, [limited])))
      const now = context.ordinal(limited)
      // A subscription may begin a little after the first reply.
      const totals = (of?: string): number[] =>
        b.announcements.flatMap((one) => (one.type === 'total' && (of === undefined || one.key === of) ? [net(one)] : []))
      let key = 0
      await context.eventually(async () => {
        await a.count(limited, `probe ${key++}`, [cell(now, 200)])
        await context.pass(20)
        assert.ok(totals().length > 0, 'nothing is announced')
      })
      b.announcements.length = 0
      await a.count(limited, 'k', [cell(now - 1, 190)])
      await a.count(limited, 'k', [cell(now, 5)])
      await a.count(limited, 'k', [cell(now, 7)])
      await a.count(limited, 'k', [cell(now, 9)])
      await a.count(limited, 'k', [cell(now, 10)])
      await context.eventually(() => assert.deepEqual(totals('k'), [197, 200]))
      await context.pass(15)
      await a.count(limited, 'k', [cell(now, 12)])
      await context.eventually(() => assert.deepEqual(totals('k'), [197, 200, 202]))
      await context.pass(15)
      await a.count(limited, 'k', [cell(now, 12)])
      await a.count(limited, 'last', [cell(now, 200)])
      await context.eventually(() => assert.deepEqual(totals('last'), [200]))
      assert.deepEqual(totals('k'), [197, 200, 202], 'without new units nothing is announced')
    },
  },
]
