import { type Duration, parseDuration, WeirError } from '@weir/core'
import { checkOptions as checkNames, invalidOption, kindOf } from '@weir/core/sync'
import { SCHEMA_NAME } from '../schema/schema-sql.ts'

/**
 * Options of `postgresStore`, after the connection. An invalid value throws `WEIR_INVALID_OPTION`, an unknown name `WEIR_UNKNOWN_OPTION`.
 */
export interface PostgresStoreOptions {
  /**
   * Names the schema for tables and functions: 1 to 50 lower-case letters, digits and `_`, no digit first.
   *
   * It also names the channel. Processes with different schemas share no counts.
   *
   * @default 'weir'
   */
  readonly schema?: string
  /**
   * Creates UNLOGGED tables, so no sync waits for a disk. After a crash they are empty, and the processes send their counts again. For
   * quotas per day or month use `false`. Existing tables stay as they are.
   *
   * A replica that becomes the primary has empty tables too.
   *
   * @default true
   */
  readonly unlogged?: boolean
  /**
   * Creates missing parts of the schema.
   *
   * If the role has no permission, an error lists the missing parts. With `false`, put the output of `schemaSql` into a migration.
   *
   * @default true
   * @see `@weir/core/docs/guides/postgres.md#a-migration`
   */
  readonly create?: boolean
  /**
   * Limits how long a sync waits for PostgreSQL before it counts as failed: 10 ms to 60 s.
   *
   * Requests wait for PostgreSQL only with coordination `'central'` and `'leased'`, at most for `storeTimeout`.
   *
   * @default 1000
   */
  readonly timeout?: Duration
  /**
   * Announces totals and blocks by NOTIFY. Without it limits are less accurate.
   *
   * A second connection receives them by LISTEN, so that all processes stop sooner at a limit.
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
