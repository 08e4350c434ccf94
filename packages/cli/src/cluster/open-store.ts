import type { Store } from '@weir/core/sync'
import { UsageError } from '../terminal/usage-error.ts'
import { etcdTarget } from './etcd-target.ts'

/** Addresses of stores, as they are told in help and errors. */
export const ADDRESSES = 'redis://host:6379, rediss://…, postgres://host/database, or of etcd http://host:2379 or https://…'

/** Milliseconds. No request waits for a command, so a slow store gets more time here than in a service. */
const TIMEOUT = 3_000

/**
 * The store at an address. Only the code of that one is loaded.
 *
 * @param namespace of Redis and etcd what keys begin with, of PostgreSQL the schema
 * @throws (rejects) UsageError for what is no address of a store; WeirError for options that can't be used
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
      throw new UsageError(`${JSON.stringify(address.replace(/:.*/s, ''))} is no address of a store. Use ${ADDRESSES}.`)
  }
}
