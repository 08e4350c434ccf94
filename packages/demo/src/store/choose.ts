import { findEtcdServer } from '@weir/tooling/etcd-server'
import { findPostgres } from '@weir/tooling/postgres-server'
import { UsageError } from '../errors.ts'
import type { DemoOptions } from '../options.ts'
import { installedRedis } from './redis-server.ts'

/** Servers other than Redis. */
export type ServerKind = 'postgres' | 'etcd'

const SERVERS = {
  postgres: {
    variable: 'POSTGRES_URL',
    form: /^postgres(ql)?:\/\/./,
    begin: 'postgres://',
    missing: 'PostgreSQL. Install it, set POSTGRES_BIN to the folder of its programs, or set POSTGRES_URL',
    there: (env: NodeJS.ProcessEnv) => findPostgres(env) !== undefined,
  },
  etcd: {
    variable: 'ETCD_URL',
    form: /^https?:\/\/./,
    begin: 'http:// or https://',
    missing: 'etcd. Install it, set ETCD_SERVER to its path, or set ETCD_URL',
    there: (env: NodeJS.ProcessEnv) => findEtcdServer(env) !== undefined,
  },
} as const

/** The store that the gateways share. */
export type StoreChoice =
  | { readonly kind: 'redis'; readonly origin: 'REDIS_URL'; readonly url: string }
  | { readonly kind: 'redis'; readonly origin: 'private'; readonly program: string }
  | { readonly kind: ServerKind; readonly origin: 'POSTGRES_URL' | 'ETCD_URL'; readonly url: string }
  | { readonly kind: ServerKind; readonly origin: 'private' }
  | { readonly kind: 'ipc'; readonly origin: 'parent' }

/**
 * Uses `REDIS_URL` if it is set, otherwise a private redis-server if it is installed, otherwise the parent process. PostgreSQL and etcd are
 * used only if the options name them.
 *
 * @throws UsageError if the store in the options is not available
 */
export function chooseStore(
  { store, killRedis }: Pick<DemoOptions, 'store' | 'killRedis'>,
  env: NodeJS.ProcessEnv = process.env,
): StoreChoice {
  if (store === 'ipc') return { kind: 'ipc', origin: 'parent' }
  if (store === 'postgres' || store === 'etcd') return chooseServer(store, env)
  const url = env['REDIS_URL']
  if (url) {
    if (!/^rediss?:\/\/./.test(url)) throw new UsageError('REDIS_URL must begin with redis:// or rediss://')
    return { kind: 'redis', origin: 'REDIS_URL', url }
  }
  const program = installedRedis(env)
  if (program !== undefined) return { kind: 'redis', origin: 'private', program }
  if (killRedis) throw new UsageError('--kill-redis needs redis-server. Install it, or set REDIS_SERVER to its path')
  if (store === 'redis')
    throw new UsageError('--store redis needs redis-server. Install it, set REDIS_SERVER to its path, or set REDIS_URL')
  return { kind: 'ipc', origin: 'parent' }
}

function chooseServer(kind: ServerKind, env: NodeJS.ProcessEnv): StoreChoice {
  const { variable, form, begin, missing, there } = SERVERS[kind]
  const url = env[variable]
  if (url) {
    if (!form.test(url)) throw new UsageError(`${variable} must begin with ${begin}`)
    return { kind, origin: variable, url }
  }
  if (!there(env)) throw new UsageError(`--store ${kind} needs ${missing}`)
  return { kind, origin: 'private' }
}

/** A URL without its password, for output. */
export function shownUrl(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//***@')
}
