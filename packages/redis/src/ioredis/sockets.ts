import { guard } from './stream-guard.ts'
import type { Client, ClusterClient } from './template.ts'

/**
 * Lets the process end although connections are open. They keep it alive only during a sync, so that the last one is not cut off. A guard
 * on each connection limits any error over its bytes to that connection.
 */
export class Sockets {
  readonly #clients: () => Iterable<Client>
  #held = 0
  /** The streams whose writes are delayed. */
  readonly #gathered: NonNullable<Client['stream']>[] = []

  constructor(clients: () => Iterable<Client>) {
    this.#clients = clients
  }

  /** Guards a client's connections from now on. */
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
   * Sends all commands until the end of this turn of the event loop in one piece. A write for each of many commands would cost the process
   * more than all its other work for them.
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
    // A socket that is not connected yet would add a listener each time.
    if (client.status !== 'connect' && client.status !== 'ready') return
    if (this.#held > 0) client.stream?.ref?.()
    else client.stream?.unref?.()
  }
}

/** Sockets of a single connection to a server. */
export function serverSockets(client: Client): Sockets {
  const clients = [client]
  const sockets = new Sockets(() => clients)
  sockets.watch(client)
  return sockets
}

/** Sockets of all connections to a Cluster, including the connection for subscriptions. */
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
      // A connection for subscriptions that has ended is replaced before this call.
      client.on('end', watch)
    }
  }
  cluster.on('+node', watch)
  cluster.on('-node', watch)
  cluster.on('ready', watch)
  return sockets
}
