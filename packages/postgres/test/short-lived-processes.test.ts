import type { Ordinal, StorePolicy, SyncReply } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { until } from '@weir/tooling/redis-servers'
import { expect, onTestFinished, test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { TABLES } from '../src/schema/tables.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()
const INTERVAL = 300
const FIXED: StorePolicy = { id: 'fixed', width: INTERVAL, cells: 1, limit: 1000, hot: 1, ttl: 2 * INTERVAL }
const POLICIES: readonly StorePolicy[] = [
  FIXED,
  { ...FIXED, id: 'sliding', width: INTERVAL / 4, cells: 4 },
  { ...FIXED, id: 'bucket', width: INTERVAL / 10, cells: 10, drain: 100 },
]

/** Sends one unit of each policy, and a heartbeat. */
function countOne({ connection }: TestNode): Promise<SyncReply> {
  const time = Date.now()
  const entries = POLICIES.map((policy) => {
    return { policy, key: 'k', cells: [{ ordinal: Math.floor(time / policy.width) as Ordinal, taken: 1, given: 0 }] }
  })
  return connection.sync({ time, entries, blocks: [], heartbeat: { ttl: INTERVAL, cursor: undefined, policies: POLICIES } })
}

describe('processes that end', () => {
  test('after its interval a process leaves no row, whether it was closed or not, and has lost nothing if it was only frozen', async () => {
    const schema = freshSchema()
    const start = (): TestNode => {
      const node = new TestNode(postgresStore(here.server.url, { schema, publish: false, timeout: 20_000 }))
      onTestFinished(() => node.close())
      return node
    }
    const processes = Array.from({ length: 30 }, start)
    const before = await Promise.all(processes.map((node) => countOne(node)))
    await Promise.all(processes.slice(15).map((node) => node.close()))
    // Rows are removed by the syncs of other processes.
    const last = start()
    await until(async () => {
      await last.connection.sync({ entries: [], blocks: [], heartbeat: { ttl: INTERVAL, cursor: '', policies: POLICIES } })
      const counts = await Promise.all(TABLES.map((table) => here.server.sql(`SELECT count(*) FROM ${schema}.${table}`)))
      return TABLES.every((table, i) => counts[i] === (table === 'nodes' ? '1' : '0'))
    }, 'all other rows are removed')
    const after = await countOne(processes[0] as TestNode)
    expect(after.heartbeat?.generation).toBe(before[0]?.heartbeat?.generation)
  })
})
