import { backgroundStore, checkOptions as checkNames, checkSockets, invalidOption, type Store } from '@weir/core/sync'
import { checkOptions, checkSchema, type PostgresStoreOptions } from './connection/options.ts'
import { type PostgresTarget, templateOf } from './connection/template.ts'
import { PostgresConnection } from './exchange/store-connection.ts'
import { grants, statements } from './schema/schema-sql.ts'

/**
 * Connects processes through PostgreSQL 12 or newer.
 *
 * @param target - a `Pool` of pg, a URL, or settings of pg. A pool is a template only: the store opens at most two connections of its own
 * with the pool's settings, and never uses, changes or ends the pool. All throttlers of a process that use the same store share them.
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { postgresStore } from '@weir/postgres'
 * import { Pool } from 'pg'
 *
 * const store = postgresStore(new Pool({ host: 'localhost', database: 'app' }))
 * ```
 */
export function postgresStore(target: PostgresTarget, storeOptions: PostgresStoreOptions = {}): Store {
  checkSockets('postgresStore')
  const options = checkOptions(storeOptions)
  const template = templateOf(target)
  return backgroundStore({
    kind: 'postgres',
    address: `${template.address} ${options.schema}`,
    // Any step runs in the process, so the database needs no code for it.
    decides: () => true,
    reserves: true,
    open: (node) => new PostgresConnection(node, template, options),
  })
}

/** Options of `schemaSql`. */
export interface SchemaOptions {
  /**
   * Names the schema, as the option of `postgresStore`.
   *
   * @default 'weir'
   */
  readonly schema?: string
  /**
   * Creates tables that are not written to the log, as the option of `postgresStore`.
   *
   * @default true
   */
  readonly unlogged?: boolean
  /**
   * Grants the role of your applications the permissions that the store needs, and no others.
   *
   * @default none: no permission is granted
   * @see `@weir/core/docs/guides/postgres.md`
   */
  readonly role?: string
}

/**
 * Returns the SQL that creates the schema, its tables and functions, for a migration. Existing objects stay unchanged. Run it in one
 * transaction.
 *
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 */
export function schemaSql(options: SchemaOptions = {}): string {
  checkNames('schemaSql', options, ['schema', 'unlogged', 'role'], 'an object such as { schema: "weir" }')
  const { schema = 'weir', unlogged = true, role } = options
  checkSchema(schema)
  if (typeof unlogged !== 'boolean') throw invalidOption('unlogged', unlogged, 'true or false')
  if (role !== undefined && (typeof role !== 'string' || !/^[^\0]{1,63}$/.test(role)))
    throw invalidOption('role', role, 'the name of a role')
  return statements(schema, unlogged) + (role === undefined ? '' : `\n${grants(schema, role)}`)
}
