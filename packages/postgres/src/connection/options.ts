import { WeirError } from '@weir/core'
import { SCHEMA_NAME } from '../schema/schema-sql.ts'

/** Options of `postgresStore` beside the connection. */
export interface PostgresStoreOptions {
  /**
   * Names the schema for the store's tables and functions, and its channel. 1 to 50 lower-case letters, digits and `_`, not beginning with
   * a digit.
   *
   * @default 'weir'
   */
  readonly schema?: string
  /**
   * Creates tables that are not written to the log. They are several times cheaper. After a crash of the server, and on a replica that
   * takes over, they are empty, and the processes send their counts again. Ignored for tables that exist already.
   *
   * @default true
   * @see `@weir/core/docs/guides/postgres.md`
   */
  readonly unlogged?: boolean
  /**
   * Creates the parts of the schema that are missing. If the role may not create them, an error lists them. With `false` put the output of
   * `schemaSql` into a migration.
   *
   * @default true
   * @see `@weir/core/docs/guides/postgres.md`
   */
  readonly create?: boolean
  /**
   * Limits how long a sync waits for PostgreSQL before it counts as failed. Milliseconds, 10 to 60,000. Requests never wait for it.
   *
   * @default 1000
   */
  readonly timeout?: number
  /**
   * Announces totals and blocks by NOTIFY, and receives them by LISTEN on a second connection. Without it limits are less accurate.
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

/** Checks what a user gave. @throws WEIR_INVALID_OPTION, WEIR_UNKNOWN_OPTION */
export function checkOptions(options: PostgresStoreOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) throw invalidOption('storeOptions', options, 'an object')
  for (const name of Object.keys(options)) {
    if (KNOWN.includes(name)) continue
    throw new WeirError('WEIR_UNKNOWN_OPTION', `Option "${name}" of postgresStore is unknown; known are ${KNOWN.join(', ')}.`)
  }
  const { schema = 'weir', unlogged = true, create = true, timeout = 1000, publish = true } = options
  checkSchema(schema)
  if (typeof timeout !== 'number' || !(timeout >= 10 && timeout <= 60_000)) {
    throw invalidOption('timeout', timeout, 'a number of milliseconds from 10 to 60000')
  }
  for (const [name, value] of Object.entries({ unlogged, create, publish })) {
    if (typeof value !== 'boolean') throw invalidOption(name, value, 'true or false')
  }
  return { schema, unlogged, create, timeout, publish }
}

/** Where other limiters have the connection. pg ignores them, and would connect to localhost. */
const FOREIGN = ['url', 'uri', 'pool', 'client', 'storeClient', 'connection']

/** Names among the settings of pg that pg would ignore. @throws WEIR_UNKNOWN_OPTION */
export function checkSettings(settings: object): void {
  const name = [...KNOWN, ...FOREIGN].find((known) => known in settings)
  if (name === undefined) return
  const instead = KNOWN.includes(name)
    ? `write postgresStore(connection, { ${name}: ... })`
    : 'give postgresStore a Pool of pg, settings of pg, or a URL itself'
  throw new WeirError('WEIR_UNKNOWN_OPTION', `Option "${name}" is unknown to pg; ${instead}.`)
}

/** @throws WEIR_INVALID_OPTION */
export function checkSchema(schema: unknown): asserts schema is string {
  if (typeof schema !== 'string' || !SCHEMA_NAME.test(schema)) {
    throw invalidOption('schema', schema, '1 to 50 lower-case letters, digits or _, beginning with no digit')
  }
}

/** An option that can't be used: names it, what was given and what is allowed. */
export function invalidOption(option: string, given: unknown, allowed: string): WeirError {
  // A pool or a URL may hold a password: of objects and texts only the kind is shown.
  const shown = typeof given === 'number' || typeof given === 'boolean' ? String(given) : given === null ? 'null' : typeof given
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${shown}; it must be ${allowed}.`)
}
