import type { Ordinal, StorePolicy, SyncReply } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { until } from '@weir/tooling/redis-servers'
import { expect, onTestFinished, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

const INTERVAL = 300
/** Seconds for which the entries of a process stay, with the most by which a lease of etcd is longer. */
const LONGEST = 60 * 1.25 + 3
const POLICY: StorePolicy = { id: 'fixed', width: INTERVAL, cells: 1, limit: 1, hot: 1, ttl: 2 * INTERVAL }

/** Sends one unit, which is announced, and a heartbeat. */
function countOne({ connection }: TestNode): Promise<SyncReply> {
  const cells = [{ ordinal: Math.floor(Date.now() / INTERVAL) as Ordinal, taken: 1, given: 0 }]
  const heartbeat = { ttl: INTERVAL, cursor: undefined, policies: [POLICY], status: 'fine' }
  return connection.sync({ entries: [{ policy: POLICY, key: 'k', cells }], blocks: [], heartbeat })
}

describeEtcd('processes that end', () => {
  const here = ownServer()

  test('a closed process leaves only its counts of the interval, and any other process nothing that stays longer than a minute', async () => {
    const namespace = freshNamespace()
    const start = (): TestNode => {
      const node = new TestNode(etcdStore(here.server.url, { namespace, timeout: PATIENT }))
      onTestFinished(() => node.close())
      return node
    }
    const [ended, closed] = [Array.from({ length: 20 }, start), Array.from({ length: 20 }, start)]
    await Promise.all([...ended, ...closed].map((node) => countOne(node)))
    await Promise.all(closed.map((node) => node.close()))
    const keys = await here.server.keys(`${namespace}/`)
    const isCount = (name: string): boolean => name.startsWith(`${namespace}/1/c/`)
    const isOf = (name: string, nodes: readonly TestNode[]): boolean => nodes.some(({ id }) => name.endsWith(`/${id}`))
    expect(keys.filter(({ name }) => isOf(name, closed) && !isCount(name))).toEqual([])
    expect(keys.filter(({ name }) => isOf(name, ended) && !isCount(name)).length).toBeGreaterThanOrEqual(20)
    const leases = [...new Set(keys.map(({ lease }) => lease))]
    const replies = await Promise.all(leases.map((ID) => here.server.ask('/v3/lease/timetolive', { ID })))
    for (const { grantedTTL } of replies) expect(Number(grantedTTL)).toBeLessThanOrEqual(LONGEST)
    await until(async () => !(await here.server.keys(`${namespace}/1/c/`)).some(({ name }) => isCount(name)), 'the counts expire')
  })
})
