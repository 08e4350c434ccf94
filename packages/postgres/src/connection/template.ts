import { pg } from './npm-install-pg.ts'
import { checkSettings, invalidTarget } from './options.ts'
import { type GuardedClient, guard } from './stream-guard.ts'

/** A `Pool` of pg. */
export interface PoolTemplate {
  /** The settings of the pool, which the store uses for its own connections. */
  readonly options: object
  /** The number of connections of the pool. */
  readonly totalCount: number
}

/**
 * The target of `postgresStore`: a `Pool` of pg as a template, a URL, or the options of pg's `Client` (host, port, database, user,
 * password, ssl …).
 */
export type PostgresTarget = PoolTemplate | ConnectionSettings | string

/** The settings of pg that identify the server. All others of its `Client` are used as well. */
export interface ConnectionSettings {
  /**
   * Sets the address as a URL, such as `postgres://user:password@host:5432/database`.
   *
   * @default none: the other settings are used
   */
  readonly connectionString?: string | undefined
  /**
   * Sets the server's host name or address, or the folder of its Unix socket.
   *
   * @default as pg: the environment variable `PGHOST`, or `localhost`
   */
  readonly host?: string | undefined
  /**
   * Sets the server's port.
   *
   * @default as pg: the environment variable `PGPORT`, or 5432
   */
  readonly port?: number | undefined
  /**
   * Names the database.
   *
   * @default as pg: the environment variable `PGDATABASE`, or the user's name
   */
  readonly database?: string | undefined
  /**
   * Names the role to connect as.
   *
   * @default as pg: the environment variable `PGUSER`, or the user of the process
   */
  readonly user?: string | undefined
  /**
   * Sets the password, or a function that returns it.
   *
   * @default as pg: the environment variable `PGPASSWORD`, or the password file
   */
  readonly password?: string | (() => string | Promise<string>) | undefined
  /**
   * Encrypts the connection: `true`, or options of `node:tls`.
   *
   * @default as pg: not encrypted
   */
  readonly ssl?: boolean | object | undefined
  readonly [more: string]: unknown
}

/** The parts of the store's own clients that are used. */
export interface Client {
  /** The process id that the server, or a pooler before it, sent for this connection. */
  readonly processID?: number | null
  readonly connection?: { readonly stream?: { destroy(): unknown; readonly bytesRead?: number } }
  connect(): Promise<unknown>
  query(query: {
    readonly text: string
    readonly values?: unknown[]
    readonly types?: object
  }): Promise<{ readonly rows: readonly unknown[] }>
  query(text: string): Promise<unknown>
  end(): Promise<void>
  ref?(): void
  unref?(): void
  on(event: 'error' | 'end' | 'notification', listener: (of: never) => void): unknown
}

/** Makes the store's own clients from the user's target, which is neither used nor changed. */
export interface Template {
  /** The server's address by the settings. Equal settings have the same address. */
  readonly address: string
  client(): Client
}

/** @throws WEIR_INVALID_OPTION */
export function templateOf(target: PostgresTarget): Template {
  const settings = settingsOf(target)
  const make = (): Client => new pg.Client({ ...settings, ...OWN }) as unknown as Client
  const { host, port, database } = made(make)
  return {
    address: `${host}:${port}/${database}`,
    client() {
      const client = make()
      guard(client as unknown as GuardedClient)
      return client
    },
  }
}

/**
 * pg's own timeouts are off, because the store has its own, which use the injected clock. `keepAlive` stops routers and firewalls from
 * dropping an idle connection.
 */
const OWN = { connectionTimeoutMillis: 0, query_timeout: 0, keepAlive: true, fallback_application_name: 'weir' }

/** Makes a client, in which pg has read the URL and the environment. */
function made(make: () => Client): { readonly host: string; readonly port: number; readonly database: string | null } {
  try {
    return make() as unknown as ReturnType<typeof made>
  } catch {
    // pg's message may contain the password.
    throw invalidTarget('')
  }
}

function settingsOf(target: PostgresTarget): object {
  if (typeof target === 'string') {
    if (!/^(postgres|postgresql|socket):\/\/|^\//.test(target)) {
      throw invalidTarget(target)
    }
    return { connectionString: target }
  }
  if (typeof target === 'object' && target !== null) {
    if (isPool(target)) return withHidden(target.options)
    // A client, or an array, would otherwise pass for settings and connect to the default port.
    const prototype: unknown = Object.getPrototypeOf(target)
    if (prototype === Object.prototype || prototype === null) {
      checkSettings(target)
      return target
    }
  }
  throw invalidTarget(target)
}

function isPool(target: object): target is PoolTemplate {
  const { options, totalCount, query } = target as Record<string, unknown>
  return typeof options === 'object' && options !== null && typeof totalCount === 'number' && typeof query === 'function'
}

/** A pool hides passwords and keys from being listed. */
function withHidden(options: object): object {
  const { password, ssl } = options as ConnectionSettings
  return { ...options, ...(password !== undefined && { password }), ...(ssl !== undefined && { ssl }) }
}
