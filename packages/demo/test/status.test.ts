import { expect, test } from 'vitest'
import type { Cluster } from '../src/cluster.ts'
import { statusOf } from '../src/status.ts'

test('the status lists limited clients only: no warm-up, and no client whose time is over', () => {
  const time = 10_000
  const block = (key: string, remainingMs: number) => ({ policy: 'client', key, remainingMs, cause: 'cooldown' })
  const full = (key: string, used: number) => ({ policy: 'client', key, used, own: used, limit: 60 })
  const snapshot = {
    nodes: 1,
    state: 'synced',
    sync: { exchanges: 0, failures: 0, entries: 0 },
    policies: [{ name: 'client', intervalMs: 2_000 }],
    blocked: [block('mallory', 900), block('warm-up', 900), block('over', 30)],
    top: [full('eve', 60), full('warm-up', 60), full('alice', 59)],
  }
  const cluster = { gateways: [{ snapshot, snapshotTime: time, baseline: undefined }], commands: undefined } as unknown as Cluster
  expect(statusOf(cluster, time).limited.map(({ key, left }) => [key, left])).toEqual([
    ['eve', 2_000],
    ['mallory', 900],
  ])
  expect(statusOf(cluster, time + 1_960).limited).toEqual([])
})
