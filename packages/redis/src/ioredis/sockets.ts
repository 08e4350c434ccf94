import { guard } from './stream-guard.ts'
import type { Client, ClusterClient } from './template.ts'

/**
 * Lets the process end by itself although connections are open: they hold it only while an exchange is under way, so
 * that a last flush is not cut off. Each connection is guarded, so that what comes over it ends no more than itself.
 */
export class Sockets {
  readonly #clients: () => Iterable<Client>
  #held = 0
  /** The streams whose writes are held back. */
  readonly #gathered: NonNullable<Client['stream']>[] = []

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

  /**
   * Has everything that is sent until the end of this turn of the event loop go out in one piece: a write for each of many commands
   * costs the process more than all else that it does for them.
   */
  gather(): void {
    if (this.#gathered.length > 0) return
    for (const { stream } of this.#clients()) {
      if (!stream?.cork) continue
      stream.cork()
      this.#gathered.push(stream)
    }
    if (this.#gathered.length > 0) process.nextTick(this.#sendGathered)
  }

  readonly #sendGathered = (): void => {
    for (const stream of this.#gathered) stream.uncork?.()
    this.#gathered.length = 0
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
  const clients = [client]
  const sockets = new Sockets(() => clients)
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
