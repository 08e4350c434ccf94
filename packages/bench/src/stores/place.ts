import type { Store } from '@weir/core'

/** The meeting place of processes, in the form that a child process receives. */
export type Place =
  | { readonly kind: 'memory' | 'ipc' }
  | { readonly kind: 'redis' | 'postgres'; readonly url: string }
  | { readonly kind: 'etcd'; readonly endpoint: string }

/** @param timeout in milliseconds, for stores over a network */
export async function storeAt(place: Place, timeout = 1_000): Promise<Store> {
  switch (place.kind) {
    case 'memory':
      return (await import('@weir/core')).memoryStore()
    case 'ipc':
      return (await import('@weir/core/ipc')).ipcStore()
    case 'redis':
      return (await import('@weir/redis')).redisStore(place.url, { timeout })
    case 'postgres':
      return (await import('@weir/postgres')).postgresStore(place.url, { timeout })
    case 'etcd':
      return (await import('@weir/etcd')).etcdStore(place.endpoint, { timeout })
  }
}
