import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { findPgbouncer, Pgbouncer } from '@weir/tooling/postgres-servers'
import { until } from '@weir/tooling/redis-servers'
import { expect, test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()
const missing = findPgbouncer() === undefined
if (missing) console.warn('pgbouncer was not found, so what happens behind it is not tested. On Debian: sudo apt-get install pgbouncer')

describe('behind pgbouncer', () => {
  test.skipIf(missing)('in transaction mode counts are exchanged, and that nothing is heard is said once', async () => {
    const pooler = await Pgbouncer.start(here.server, 'transaction')
    const schema = freshSchema()
    const [a, b] = [1, 2].map(() => new TestNode(postgresStore(pooler.url, { schema, timeout: 2_000 }))) as [TestNode, TestNode]
    const direct = new TestNode(postgresStore(here.server.url, { schema, timeout: 10_000 }))
    expect(await a.eventually(() => a.count('k', 3).catch(() => undefined))).toBe(3)
    expect(await b.eventually(() => b.count('k', 4).catch(() => undefined))).toBe(7)
    await until(() => a.warnings.length > 0 && b.warnings.length > 0, 'both have said it')
    expect(a.warnings.map(({ code, message }) => [code, message])).toEqual([
      ['WEIR_STORE_UNAVAILABLE', expect.stringContaining('a pooler between this process and PostgreSQL')],
    ])
    // Other processes receive their announcements nevertheless.
    await until(async () => {
      await direct.beat()
      await a.connection.sync({ entries: [], blocks: [{ policy: POLICY, key: 'k', kind: 'set', remaining: 60_000 }] })
      return direct.announcements.length > 0
    }, 'blocks are announced')
    expect(await b.count('k', 5)).toBe(8)
    expect(b.announcements).toEqual([])
    expect(b.warnings).toHaveLength(1)
    await Promise.all([a.close(), b.close(), direct.close()])
    await pooler.stop()
  })

  test.skipIf(missing)('in session mode announcements are heard', async () => {
    const pooler = await Pgbouncer.start(here.server, 'session')
    const schema = freshSchema()
    const [a, b] = [1, 2].map(() => new TestNode(postgresStore(pooler.url, { schema, timeout: 10_000 }))) as [TestNode, TestNode]
    await until(async () => {
      const kind = b.announcements.length % 2 === 0 ? 'set' : 'lift'
      await a.connection.sync({ entries: [], blocks: [{ policy: POLICY, key: 'k', kind, remaining: 60_000 }] })
      await b.beat()
      return b.announcements.length > 1
    }, 'blocks are announced')
    expect([...a.warnings, ...b.warnings]).toEqual([])
    await Promise.all([a.close(), b.close()])
    await pooler.stop()
  })
})
