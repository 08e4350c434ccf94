import { type Duration, parseDuration, WeirError } from '@weir/core'
import { checkOptions as checkNames, invalidOption, kindOf } from '@weir/core/sync'
import { SCHEMA_NAME } from '../schema/schema-sql.ts'

/**
 * Options of `postgresStore`, after the connection. An invalid value throws `WEIR_INVALID_OPTION`, an unknown name `WEIR_UNKNOWN_OPTION`.
 */
export interface PostgresStoreOptions {
  /**
   * Names the schema of the store's tables and functions, and its channel. Processes with different schemas share no counts. 1 to 50
   * lower-case letters, digits and `_`, not beginning with a digit.
   *
   * @default 'weir'
   */
  readonly schema?: string
  /**
   * Creates tables that are not written to the log, which makes them several times cheaper. After a crash of the server, and on a replica
   * that takes over, they are empty, and the processes send their counts again. Ignored for tables that exist already.
   *
   * @default true
   * @see `@weir/core/docs/guides/postgres.md`
   */
  readonly unlogged?: boolean
  /**
   * Creates the missing parts of the schema. If the role has no permission, an error lists them. With `false`, put the output of
   * `schemaSql` into a migration.
   *
   * @default true
   * @see `@weir/core/docs/guides/postgres.md`
   */
  readonly create?: boolean
  /**
   * Limits how long a sync waits for PostgreSQL before it counts as failed. A duration from 10 ms to 60 s. Requests never wait for it.
   *
   * @default 1000
   */
  readonly timeout?: Duration
  /**
   * Announces totals and blocks by NOTIFY, and receives them by LISTEN on a second connection, so that all processes stop sooner at a
   * limit. With `false`, limits are less accurate.
   *
   * @default true
   */
  readonly publish?: boolean
}

export interface CheckedOptions {
  readonly schema: string
  readonly unlogged: boolean
  readonly create: boolean
  readonly timeout: number
  readonly publish: boolean
}

const KNOWN = ['schema', 'unlogged', 'create', 'timeout', 'publish']

/** Checks the user's options. @throws WEIR_INVALID_OPTION, WEIR_UNKNOWN_OPTION */
export function checkOptions(options: PostgresStoreOptions): CheckedOptions {
  checkNames('postgresStore', options, KNOWN, 'an object such as { schema: "weir" } as second argument')
  const { schema = 'weir', unlogged = true, create = true, publish = true } = options
  checkSchema(schema)
  const timeout = parseDuration(options.timeout ?? 1000, 'timeout', 10, 60_000)
  for (const [name, value] of Object.entries({ unlogged, create, publish })) {
    if (typeof value !== 'boolean') throw invalidOption(name, value, 'true or false')
  }
  return { schema, unlogged, create, timeout, publish }
}

/** Options that contain the connection in other limiters. pg ignores them and would connect to localhost. */
const FOREIGN = ['url', 'uri', 'pool', 'client', 'storeClient', 'connection']

/** Checks for names that pg would ignore among its settings. @throws WEIR_UNKNOWN_OPTION */
export function checkSettings(settings: object): void {
  const name = [...KNOWN, ...FOREIGN].find((known) => known in settings)
  if (name === undefined) return
  const instead = KNOWN.includes(name) ? `Use postgresStore(connection, { ${name}: … })` : `Use ${ALLOWED}`
  throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${name}" of pg. ${instead}.`)
}

/** @throws WEIR_INVALID_OPTION */
export function checkSchema(schema: unknown): asserts schema is string {
  if (typeof schema !== 'string' || !SCHEMA_NAME.test(schema)) {
    throw invalidOption('schema', schema, '1 to 50 lower-case letters, digits or _, beginning with no digit')
  }
}

const ALLOWED = 'a URL like postgres://user@host:5432/database, a Pool of pg, or settings of pg'

/** The error for a target that is no address. A pool or a URL may contain a password, so only its kind is shown. */
export function invalidTarget(given: unknown): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `postgresStore(): the first argument is ${kindOf(given)} that can't be used. Use ${ALLOWED}.`)
}
