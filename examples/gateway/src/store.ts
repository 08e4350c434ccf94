import { memoryStore, type Store } from '@weir/core'

/** The store at an address; none: this process alone. Only the client that is needed is loaded. */
export async function storeAt(address: string | undefined): Promise<Store> {
  if (address === undefined) return memoryStore()
  const { protocol } = new URL(address)
  if (protocol.startsWith('redis')) return (await import('@weir/redis')).redisStore(address)
  if (protocol.startsWith('postgres')) return (await import('@weir/postgres')).postgresStore(address)
  return (await import('@weir/etcd')).etcdStore(address)
}
