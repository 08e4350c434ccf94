import { memoryStore, type Store } from '@weir/core'

/** Stores by name: the variable with the address, and the default address. */
const KINDS: Readonly<Record<string, readonly [variable: string, usual: string]>> = {
  redis: ['REDIS_URL', 'redis://127.0.0.1:6379'],
  postgres: ['POSTGRES_URL', 'postgres://127.0.0.1:5432/postgres'],
  etcd: ['ETCD_URL', 'http://127.0.0.1:2379'],
}

const PROTOCOLS = ['redis:', 'rediss:', 'postgres:', 'postgresql:', 'http:', 'https:']

/** Whether a text names a store: `ipc` for the processes of one parent, or a server's address. */
export function isStore(text: string): boolean {
  return text === 'ipc' || (URL.canParse(text) && PROTOCOLS.includes(new URL(text).protocol))
}

/** The value of `--store` in the form of the configuration, or undefined if it names no store. */
export function namedStore(text: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const [variable, usual] = KINDS[text] ?? []
  const store = variable === undefined ? text : env[variable] || (usual as string)
  return isStore(store) ? store : undefined
}

/** The store of the configuration. Without one, this process counts alone. Only the needed client is loaded. */
export async function storeAt(place: string | undefined): Promise<Store> {
  if (place === undefined) return memoryStore()
  if (place === 'ipc') return (await import('@weir/core/ipc')).ipcStore()
  const { protocol } = new URL(place)
  if (protocol.startsWith('redis')) return (await import('@weir/redis')).redisStore(place)
  if (protocol.startsWith('postgres')) return (await import('@weir/postgres')).postgresStore(place)
  return (await import('@weir/etcd')).etcdStore(place)
}
