import { TestNode } from '@weir/testing/store-tests/test-node'
import { PostgresServer, standbyOf } from '@weir/tooling/postgres-servers'
import { expect, test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe } from './server.ts'

describe('a standby that takes over', () => {
  test('what it lacks is noticed, and sent again', async () => {
    const primary = await PostgresServer.start({ settings: ['wal_level=replica'] })
    const node = new TestNode(postgresStore(primary.url, { unlogged: false, timeout: 10_000 }))
    expect(await node.count('k', 3)).toBe(3)
    // The standby has the data up to now, and nothing that is written later.
    const standby = await PostgresServer.start({ port: primary.port + 1, data: standbyOf(primary) })
    await standby.kill()
    expect(await node.count('k', 8)).toBe(8)
    const { generation } = await node.beat()

    await primary.kill()
    const successor = await PostgresServer.start({ port: primary.port, data: async (directory) => standby.copyTo(directory) })
    await successor.promote()
    await node.eventually(async () => ((await node.beat().catch(() => undefined))?.generation === generation ? undefined : true))
    expect(await node.eventually(() => node.count('k', 8).catch(() => undefined))).toBe(8)
    await node.close()
    await Promise.all([primary.stop(), standby.stop(), successor.stop()])
  })
})
