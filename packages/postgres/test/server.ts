import type { Store } from '@weir/core'
import type { StoreContractFixture } from '@weir/testing'
import { findPostgres, howToInstallPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { beforeAll, describe as describeAlways } from 'vitest'
import { TABLES } from '../src/schema/tables.ts'

let count = 0

/** A schema that no other test uses, so that tests share only the server. */
export function freshSchema(): string {
  return `weir_${process.pid}_${++count}`
}

let missing = false
if (findPostgres() === undefined) {
  missing = true
  console.warn(howToInstallPostgres)
}

/** Skips suites that need a server if PostgreSQL is not installed. */
export const describe: typeof describeAlways = (missing ? describeAlways.skip : describeAlways) as typeof describeAlways

/** The server for all files of this process, with which it ends. */
let shared: Promise<PostgresServer> | undefined

export interface SharedServer {
  readonly server: PostgresServer
}

export function sharedServer(): SharedServer {
  let server: PostgresServer | undefined
  beforeAll(async () => {
    if (missing) return
    shared ??= PostgresServer.start()
    server = await shared
  })
  return {
    get server() {
      if (server === undefined) throw new Error('The server is there in tests only.')
      return server
    },
  }
}

/** The rows that are left once everything has expired, because every sync cleans up. */
async function leftoversOf(server: PostgresServer, schema: string): Promise<string[]> {
  const tables = ['cells', 'windows', 'buckets', 'leases', 'blocks', 'rules']
  await server.sql(`SELECT ${schema}.clean_1(extract(epoch FROM clock_timestamp())::float8 * 1000, 1000)`)
  const counts = await Promise.all(tables.map((table) => server.sql(`SELECT count(*) FROM ${schema}.${table}`)))
  return tables.filter((_, i) => counts[i] !== '0')
}

/**
 * Fixtures of the store contract that use one server for all cases. They share a schema, which the first case creates, and which is emptied
 * after each.
 */
export function postgresFixtures(
  makeStore: (schema: string) => Store,
  here: SharedServer,
  more: (schema: string) => Partial<StoreContractFixture> = () => ({}),
): () => StoreContractFixture {
  const schema = freshSchema()
  return () => {
    const store = makeStore(schema)
    return {
      connect: (node) => store.open(node),
      leftovers: () => leftoversOf(here.server, schema),
      close: async () => void (await here.server.sql(`TRUNCATE ${tablesOf(schema)}`)),
      ...more(schema),
    }
  }
}

/** The names of all tables, for TRUNCATE. */
export function tablesOf(schema: string): string {
  return TABLES.map((table) => `${schema}.${table}`).join(', ')
}
