import { UsageError } from '../errors.ts'
import type { DemoOptions } from '../options.ts'
import { installedRedis } from './redis-server.ts'

/** Where the gateways will meet. */
export type StoreChoice =
  | { readonly kind: 'redis'; readonly origin: 'REDIS_URL'; readonly url: string }
  | { readonly kind: 'redis'; readonly origin: 'private'; readonly program: string }
  | { readonly kind: 'ipc'; readonly origin: 'parent' }

/**
 * `REDIS_URL` if set, else a private redis-server if installed, else the parent process.
 *
 * @throws UsageError when the options ask for what is not there
 */
export function chooseStore(
  { store, killRedis }: Pick<DemoOptions, 'store' | 'killRedis'>,
  env: NodeJS.ProcessEnv = process.env,
): StoreChoice {
  if (store === 'ipc') return { kind: 'ipc', origin: 'parent' }
  const url = env['REDIS_URL']
  if (url) {
    if (!/^rediss?:\/\/./.test(url)) throw new UsageError('REDIS_URL must begin with redis:// or rediss://')
    return { kind: 'redis', origin: 'REDIS_URL', url }
  }
  const program = installedRedis(env)
  if (program !== undefined) return { kind: 'redis', origin: 'private', program }
  if (killRedis) throw new UsageError('--kill-redis needs redis-server: install it, or name it in REDIS_SERVER')
  if (store === 'redis') throw new UsageError('--store redis needs redis-server: install it, name it in REDIS_SERVER, or set REDIS_URL')
  return { kind: 'ipc', origin: 'parent' }
}

/** A URL as it may be shown: without its password. */
export function shownUrl(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//***@')
}
