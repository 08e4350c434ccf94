import type { Store } from '@weir/core/sync'
import { UsageError } from '../terminal/usage-error.ts'
import { etcdTarget } from './etcd-target.ts'

/** Addresses of stores, for help and error messages. */
export const ADDRESSES = 'redis://host:6379, rediss://…, postgres://host/database, or for etcd http://host:2379 or https://…'

/** Milliseconds. No request waits for a command, so a slow store gets more time here than in a service. */
const TIMEOUT = 3_000

/**
 * Opens the store at an address. Loads only the code of this store.
 *
 * @param namespace the prefix of keys in Redis and etcd, or the schema in PostgreSQL
 * @throws (rejects) UsageError for an address of no known store, WeirError for invalid options
 */
export async function openStore(address: string, namespace: string): Promise<Store> {
  const [scheme = ''] = /^[a-z]+(?=:\/\/)/i.exec(address) ?? []
  switch (scheme.toLowerCase()) {
    case 'redis':
    case 'rediss': {
      const { redisStore } = await import('@weir/redis')
      return redisStore(address, { namespace, timeout: TIMEOUT })
    }
    case 'postgres':
    case 'postgresql': {
      const { postgresStore } = await import('@weir/postgres')
      // A command that only reads creates no schema.
      return postgresStore(address, { schema: namespace, create: false, timeout: TIMEOUT })
    }
    case 'http':
    case 'https': {
      const { etcdStore } = await import('@weir/etcd')
      return etcdStore(etcdTarget(address), { namespace, timeout: TIMEOUT })
    }
    default:
      throw new UsageError(`${JSON.stringify(address.replace(/:.*/s, ''))} is not an address of a store. Use ${ADDRESSES}.`)
  }
}
