import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Algorithm, fixedWindow } from '@weir/core'
import { faultProxy } from '@weir/testing'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { findPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { until } from '@weir/tooling/redis-servers'
import pg from 'pg'
import { expect, test } from 'vitest'
import { postgresStore, schemaSql } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()
/** A timeout that no step exceeds on a busy machine, for tests that don't measure time. */
const patient = { timeout: 10_000 }

/** The message of the first sync that fails. */
function failure(node: TestNode, taken: number): Promise<string> {
  return node.eventually(() =>
    node.count('k', taken).then(
      () => undefined,
      (error: unknown) => String(error),
    ),
  )
}

/** The statements of the guide that grant what a role needs. */
function documentedGrants(schema: string, role: string): string {
  const text = readFileSync(new URL('../../../docs/guides/postgres.md', import.meta.url), 'utf8')
  const found = /```sql\n(GRANT [^`]+)```/.exec(text)?.[1]
  if (found === undefined) throw new Error('docs/guides/postgres.md contains no permissions.')
  return found.replaceAll('SCHEMA weir', `SCHEMA ${schema}`).replaceAll('TO app', `TO ${role}`)
}

describe('a store in PostgreSQL', () => {
  test('after a crash unlogged tables are empty: nodes notice, and totals are whole again', async () => {
    const store = postgresStore(here.server.url, { schema: freshSchema(), ...patient })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    expect(await a.count('k', 3)).toBe(3)
    expect(await b.count('k', 4)).toBe(7)
    const { generation } = await a.beat()
    await here.server.restart()
    await a.eventually(async () => ((await a.beat().catch(() => undefined))?.generation === generation ? undefined : true))
    await a.eventually(() => a.count('k', 3).catch(() => undefined))
    expect(await b.eventually(() => b.count('k', 4).catch(() => undefined))).toBe(7)
    await Promise.all([a.close(), b.close()])
  })

  test('a truncated table alone is noticed', async () => {
    const schema = freshSchema()
    const node = new TestNode(postgresStore(here.server.url, { schema, ...patient }))
    await node.count('k', 3)
    const { generation } = await node.beat()
    expect((await node.beat()).generation).toBe(generation)
    await here.server.sql(`TRUNCATE ${schema}.cells`)
    expect((await node.beat()).generation).not.toBe(generation)
    expect(await node.count('k', 3)).toBe(3)
    await node.close()
  })

  test('a schema or a table that was dropped is made again, and its loss is noticed', async () => {
    const schema = freshSchema()
    const node = new TestNode(postgresStore(here.server.url, { schema, ...patient }))
    await node.count('k', 3)
    const { generation } = await node.beat()
    await here.server.sql(`DROP SCHEMA ${schema} CASCADE`)
    expect(await node.eventually(() => node.count('k', 4).catch(() => undefined))).toBe(4)
    expect((await node.beat()).generation).not.toBe(generation)
    await here.server.sql(`DROP TABLE ${schema}.cells`)
    expect(await node.eventually(() => node.count('k', 5).catch(() => undefined))).toBe(5)
    await node.close()
  })

  test('connections that are ended come back, and no count is lost or doubled', async () => {
    const schema = freshSchema()
    const node = new TestNode(postgresStore(here.server.url, { schema, ...patient }))
    await node.count('k', 3)
    const listener = `SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN "${schema}:1"'`
    let first = ''
    await until(async () => (first = await here.server.sql(listener)) !== '', 'it listens')
    await here.server.sql(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'weir'`)
    expect(await node.eventually(() => node.count('k', 4).catch(() => undefined))).toBe(4)
    await until(async () => !['', first].includes(await here.server.sql(listener)), 'it listens again')
    await node.close()
  })

  test('a good connection that ended is replaced at once, and its calls are sent again, without the process having read that it ended', async () => {
    const proxy = await faultProxy({ port: here.server.port })
    const { href } = Object.assign(new URL(here.server.url), { port: String(proxy.port) })
    const node = new TestNode(postgresStore(href, { schema: freshSchema(), publish: false, ...patient }))
    const step = fixedWindow().step as NonNullable<Algorithm['step']>
    const options = { name: 'decided', id: 'decided', limit: 3, interval: 3_600_000 }
    const decided = { id: 'decided', step, parameters: step.parameters(options as never) }
    await node.count('k', 1)
    expect(await node.take(decided, 'k', 1, 3)).toMatchObject({ allowed: true, remaining: 2 })
    const terminate = `SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = 'weir'`
    const psql = [join(findPostgres() ?? '', 'psql'), ['-X', '-d', here.server.url, '-c', terminate], { cwd: '/' }] as const
    for (const [i, end] of [() => proxy.reset(), () => execFileSync(...psql)].entries()) {
      // A connection that ends soon after its start is not replaced at once.
      await setTimeout(300)
      end()
      expect(await node.count('k', 2 + i)).toBe(2 + i)
      await setTimeout(300)
      end()
      expect(await node.take(decided, 'k', 1, 3)).toMatchObject({ allowed: true, remaining: 1 - i })
    }
    await node.close()
    await proxy.close()
  })

  test('a node opens two connections, whatever it does, and none is left when it is closed', async () => {
    const schema = freshSchema()
    const name = `application ${schema}`
    const store = postgresStore(new pg.Pool({ connectionString: here.server.url, application_name: name, max: 20 }), { schema, ...patient })
    const node = new TestNode(store)
    const step = fixedWindow().step as NonNullable<Algorithm['step']>
    const options = { name: 'decided', id: 'decided', limit: 100, interval: 3_600_000 }
    const decided = { id: 'decided', step, parameters: step.parameters(options as never) }
    const used = `SELECT count(*) FROM pg_stat_activity WHERE application_name = '${name}'`
    // A decision doesn't wait for a connection.
    await node.eventually(() => node.take(decided, 'k', 1, 100).catch(() => undefined))
    for (let i = 1; i <= 20; i++) {
      await Promise.all([...Array.from({ length: 10 }, (_, k) => node.count(`k${k}`, i)), node.beat(), node.take(decided, 'k', 1, 100)])
      expect(Number(await here.server.sql(used))).toBeLessThanOrEqual(2)
    }
    await node.close()
    await until(async () => (await here.server.sql(used)) === '0', 'its connections are closed')
  })

  test('a server that is absent at the start is used as soon as it is there', async () => {
    const late = await PostgresServer.start()
    await late.kill()
    const node = new TestNode(postgresStore(late.url, patient))
    await expect(node.count('k', 1)).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    await late.start()
    expect(await node.eventually(() => node.count('k', 1).catch(() => undefined))).toBe(1)
    await node.close()
    await late.stop()
  })

  test('the permissions in the guide suffice, and what is missing is said', async () => {
    const schema = freshSchema()
    const role = `role_${schema}`
    await here.server.sql(`CREATE ROLE ${role} LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC`)
    const store = postgresStore(here.server.urlOf('postgres', role), { schema, ...patient })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    expect(await failure(a, 1)).toMatch(/permission denied for database.*schemaSql\(\)/)

    await here.server.sql(schemaSql({ schema }))
    expect(await failure(a, 1)).toMatch(/permission denied for schema.*schemaSql\(\)/)
    await here.server.sql(documentedGrants(schema, role))
    expect(await a.eventually(() => a.count('k', 0.5).catch(() => undefined))).toBe(0.5)
    expect((await b.beat()).nodes).toBe(1)
    await until(async () => {
      const kind = b.announcements.length % 2 === 0 ? 'set' : 'lift'
      await a.connection.sync({ entries: [], blocks: [{ policy: POLICY, key: 'k', kind, remaining: 1000 }] })
      await b.beat()
      return b.announcements.length > 1
    }, 'blocks are announced')

    await here.server.sql(`REVOKE UPDATE ON ${schema}.cells FROM ${role}`)
    expect(await failure(a, 2)).toMatch(/permission denied for table cells/)
    await here.server.sql(schemaSql({ schema, role }))
    expect(await a.count('k', 3)).toBe(3)
    await Promise.all([a.close(), b.close()])
  })

  test('what the printed statements make a store takes as it is, and they can be run again', async () => {
    const schema = freshSchema()
    const sql = schemaSql({ schema, unlogged: false })
    await here.server.sql(`BEGIN; ${sql}; COMMIT`)
    const node = new TestNode(postgresStore(here.server.url, { schema, create: false, ...patient }))
    expect(await node.count('k', 5)).toBe(5)
    await here.server.sql(sql)
    expect(await node.count('k', 6)).toBe(6)
    const kinds = `SELECT DISTINCT relpersistence FROM pg_class WHERE relnamespace = '${schema}'::regnamespace`
    expect(await here.server.sql(kinds)).toBe('p')
    await node.close()
    const other = new TestNode(postgresStore(here.server.url, { schema: freshSchema(), create: false, ...patient }))
    expect(await failure(other, 1)).toMatch(/does not exist.*schemaSql\(\)/)
    await other.close()
  })

  test('a read-only database and a role without connections refuse, and are used again when they no longer do', async () => {
    const schema = freshSchema()
    const role = `role_${schema}`
    await here.server.sql(`CREATE ROLE ${role} LOGIN; ${schemaSql({ schema, role })}`)
    const node = new TestNode(postgresStore(here.server.urlOf('postgres', role), { schema, ...patient }))
    expect(await node.count('k', 1)).toBe(1)
    const ended = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '${role}'`
    for (const [fault, end, message] of [
      [`ALTER ROLE ${role} SET default_transaction_read_only = on`, `ALTER ROLE ${role} RESET default_transaction_read_only`, /read-only/],
      [`ALTER ROLE ${role} CONNECTION LIMIT 0`, `ALTER ROLE ${role} CONNECTION LIMIT -1`, /too many connections/],
    ] as const) {
      await here.server.sql(fault)
      await here.server.sql(ended)
      await node.eventually(async () => (message.test(await failure(node, 2)) ? true : undefined))
      await here.server.sql(end)
      await here.server.sql(ended)
      expect(await node.eventually(() => node.count('k', 2).catch(() => undefined))).toBe(2)
    }
    await node.close()
  })

  test('a wrong database is an answer, not a crash', async () => {
    const node = new TestNode(postgresStore(here.server.urlOf('nowhere'), patient))
    await expect(node.count('k', 1)).rejects.toMatchObject({
      code: 'WEIR_STORE_UNAVAILABLE',
      message: expect.stringContaining('database "nowhere" does not exist'),
    })
    await node.close()
  })

  test('an open store does not keep a process alive, whether or not there is a server', async () => {
    const program = `
      import { systemClock } from '@weir/core'
      import { postgresStore } from './src/index.ts'
      const at = (url) => postgresStore(url, { schema: '${freshSchema()}', timeout: 10_000 }).open({ id: 'x', clock: systemClock, announced: () => {} })
      const reply = await at(${JSON.stringify(here.server.url)}).sync({ entries: [], blocks: [] })
      const failed = await at('postgres://postgres@127.0.0.1:1/x').sync({ entries: [], blocks: [] }).catch(({ code }) => code)
      console.log(reply.time > 0, failed)`
    const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=@weir/source', '--input-type=module', '-e', program], {
      cwd: new URL('..', import.meta.url).pathname,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout?.on('data', (data) => {
      output += String(data)
    })
    expect(await once(child, 'close')).toEqual([0, null])
    expect(output).toBe('true WEIR_STORE_UNAVAILABLE\n')
  })
})
