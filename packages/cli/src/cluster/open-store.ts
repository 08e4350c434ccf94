import type { Store } from '@weir/core/sync'
import { UsageError } from '../terminal/usage-error.ts'

/** Addresses of stores, as they are told in help and errors. */
export const ADDRESSES = 'redis://host:6379, rediss://…, postgres://host/database, or of etcd http://host:2379 or https://…'

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
      return redisStore(address, { namespace })
    }
    case 'postgres':
    case 'postgresql': {
      const { postgresStore } = await import('@weir/postgres')
      // Who looks makes nothing.
      return postgresStore(address, { schema: namespace, create: false })
    }
    case 'http':
    case 'https': {
      const { etcdStore } = await import('@weir/etcd')
      return etcdStore(etcdTarget(address), { namespace })
    }
    default:
      throw new UsageError(`${JSON.stringify(address.replace(/:.*/s, ''))} is no address of a store; it must be ${ADDRESSES}.`)
  }
}

/** Members stand beside each other, separated by commas; a user is given with the first. */
function etcdTarget(address: string): { endpoints: readonly string[]; username?: string; password?: string } {
  let user: { username: string; password: string } | undefined
  const endpoints = address.split(',').map((one) => {
    let url: URL
    try {
      url = new URL(one)
    } catch {
      throw new UsageError('The address of etcd can not be read; it must be such as http://host:2379 or http://one:2379,http://two:2379.')
    }
    if (url.username !== '') user ??= { username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
    return `${url.protocol}//${url.host}`
  })
  return { endpoints, ...user }
}
