import { guard } from './stream-guard.ts'
import type { Client, ClusterClient } from './template.ts'

/**
 * Lets the process end by itself although connections are open: they hold it only while an exchange is under way, so
 * that a last flush is not cut off. Each connection is guarded, so that what comes over it ends no more than itself.
 */
export class Sockets {
  readonly #clients: () => Iterable<Client>
  #held = 0

  constructor(clients: () => Iterable<Client>) {
    this.#clients = clients
  }

  /** Sees to a client's connections from now on. */
  watch(client: Client): void {
    guard(client)
    client.on('connect', () => this.#apply(client))
    client.on('ready', () => this.#apply(client))
  }

  hold(): void {
    if (this.#held++ === 0) this.#applyAll()
  }

  release(): void {
    if (--this.#held === 0) this.#applyAll()
  }

  #applyAll(): void {
    for (const client of this.#clients()) this.#apply(client)
  }

  #apply(client: Client): void {
    // A socket that is not connected yet would only remember the wish, as one more listener each time.
    if (client.status !== 'connect' && client.status !== 'ready') return
    if (this.#held > 0) client.stream?.ref?.()
    else client.stream?.unref?.()
  }
}

/** Sockets of the one connection to a server. */
export function serverSockets(client: Client): Sockets {
  const sockets = new Sockets(() => [client])
  sockets.watch(client)
  return sockets
}

/** Sockets of all connections to a Cluster, the one for subscriptions included. */
export function clusterSockets(cluster: ClusterClient): Sockets {
  const all = (): Client[] => {
    const subscriber = cluster.subscriber?.getInstance?.()
    return subscriber ? [...cluster.nodes('all'), subscriber] : cluster.nodes('all')
  }
  const sockets = new Sockets(all)
  const watched = new WeakSet<Client>()
  const watch = (): void => {
    for (const client of all()) {
      if (watched.has(client)) continue
      watched.add(client)
      sockets.watch(client)
      // A connection for subscriptions that has ended is replaced before this is called.
      client.on('end', watch)
    }
  }
  cluster.on('+node', watch)
  cluster.on('-node', watch)
  cluster.on('ready', watch)
  return sockets
}
