import { faultProxy } from '@weir/testing'
import { PostgresServer } from '@weir/tooling/postgres-servers'
import { BOOKS } from './protocol.ts'
import type { Stage } from './servers.ts'
import { schemaOf } from './store-of.ts'

const DAY = 86_400_000

/** A PostgreSQL behind a proxy, which causes no faults at first. */
export async function startPostgres(): Promise<Stage> {
  const server = await PostgresServer.start()
  const proxy = await faultProxy({ port: server.port })
  const rows = async (text: string): Promise<string[][]> =>
    (await server.sql(text)).split('\n').flatMap((row) => (row === '' ? [] : [row.split('|')]))
  return {
    target: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`,
    servers: [],
    proxy,
    postgres: server,
    books: {
      async booked(namespace) {
        const units = `SELECT key, sum(taken - given) FROM ${schemaOf(namespace)}.cells WHERE policy LIKE '%${BOOKS}%' GROUP BY key`
        return new Map((await rows(units)).map(([key = '', sum]) => [key, Number(sum)]))
      },
      async immortals(namespace) {
        const schema = schemaOf(namespace)
        const tables = `SELECT table_name FROM information_schema.columns WHERE table_schema = '${schema}' AND column_name = 'expires'`
        const found: string[] = []
        for (const [table] of await rows(tables)) {
          const late = await server.sql(`SELECT count(*) FROM ${schema}.${table} WHERE NOT expires < ${Date.now() + DAY}`)
          if (late !== '0') found.push(`${late} rows of ${schema}.${table}`)
        }
        return found
      },
    },
    stop: async () => {
      await proxy.close()
      await server.stop()
    },
  }
}

/** The statement that empties all tables of the processes' schemas. */
export const TRUNCATE_ALL = `DO $$ DECLARE one text; BEGIN
  FOR one IN SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
    WHERE table_schema LIKE 'fault%' AND table_type = 'BASE TABLE'
  LOOP EXECUTE 'TRUNCATE ' || one; END LOOP;
END $$`
