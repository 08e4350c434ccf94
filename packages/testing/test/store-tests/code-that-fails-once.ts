import type { Store } from '@weir/core'
import type { SyncEntry } from '@weir/core/sync'
import { outOfFiles } from '@weir/tooling/out-of-files'
import { describe, expect, test } from 'vitest'
import { POLICY, TestNode } from './test-node.ts'

/** Key writes for the shapes of counts, and for leases. A store may load code for each of them. */
function entriesOf({ ordinal }: TestNode) {
  const cells = [{ ordinal, taken: 3, given: 0 }]
  const asks = { ordinal, seq: 1, incarnation: 0, granted: 0, returned: 0, taken: 0, given: 0, cleared: 0, epoch: 0, nodes: 1, limit: 100 }
  return {
    sliding: { policy: { ...POLICY, id: 'sliding', cells: 3 }, key: 'k', cells },
    bucket: { policy: { ...POLICY, id: 'bucket', cells: 20, limit: 100, drain: 10 }, key: 'k', cells },
    leased: { policy: POLICY, key: 'l', cells: [], lease: { ...asks, least: 1, waiting: 1, upTo: 2, early: 1_000, lifetime: 400 } },
    fixed: { policy: POLICY, key: 'k', cells },
  } as const satisfies Readonly<Record<string, SyncEntry>>
}

type Part = keyof ReturnType<typeof entriesOf>

/**
 * Makes the loading of a store's code fail, as in a process without free file descriptors. No other test may run in the same file,
 * because loaded code can't fail any more.
 *
 * @param later the parts whose code the store loads with the first entry that needs it
 */
export function codeThatFailsOnce(open: () => Store, later: readonly Part[]): void {
  describe('code of the store that can not be loaded', () => {
    test('fails alone: other counts and the heartbeat of the same exchange go on, and the next exchange loads it', async () => {
      const node = new TestNode(open())
      const entries = Object.entries(entriesOf(node))
      const exchange = () =>
        node.connection.sync({
          entries: entries.map(([, entry]) => entry),
          blocks: [{ policy: POLICY, key: 'blocked', kind: 'set', remaining: 60_000 }],
          heartbeat: { ttl: 10_000, cursor: '', policies: [POLICY] },
        })
      const answered = ({ results }: Awaited<ReturnType<typeof exchange>>) =>
        entries.flatMap(([name], i) => (results[i] === undefined ? [] : [name]))

      await node.eventually(() => node.count('connected', 1).catch(() => undefined))
      const files = outOfFiles()
      const without = await exchange()
      expect(answered(without)).toEqual(entries.flatMap(([name]) => (later.includes(name as Part) ? [] : [name])))
      expect(without.blocks[0]).toBeGreaterThan(0)
      expect(without.heartbeat).toBeDefined()

      const { leased } = entriesOf(node)
      const quotaAlone = await node.connection.sync({ entries: [leased], blocks: [] })
      expect(quotaAlone.time).toBeGreaterThan(0)
      expect(node.warnings.map(({ code }) => code)).toEqual(['WEIR_NOT_LOADED'])

      files.end()
      const whole = await exchange()
      expect(answered(whole)).toEqual(entries.map(([name]) => name))
      const [sliding, bucket, quota, fixed] = whole.results
      expect([sliding, bucket, fixed].map((result) => result?.cells.at(-1)?.taken)).toEqual([3, 3, 3])
      expect(quota?.lease?.granted).toBeGreaterThan(0)
      await node.close()
    })
  })
}
