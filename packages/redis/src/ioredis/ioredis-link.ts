import type { Clock, TimerHandle } from '@weir/core'
import { type Link, type LinkOptions, subscriberOf } from '../connection/link.ts'
import { run, type Script } from '../scripts/script.ts'
import { Keeper } from './keeper.ts'
import { clusterSockets, type Sockets, serverSockets } from './sockets.ts'
import type { Client, ClusterClient, Template } from './template.ts'

/**
 * After so much silence, as a part of the storeTimeout, an attempt to connect is given up: a server that answers again is used
 * within a second, whatever was lost before.
 */
const PATIENCE = 0.5

/** A node's connections by clients of ioredis. */
export class IoredisLink implements Link {
  heardAt: number = Number.NEGATIVE_INFINITY
  readonly #commands: Client
  readonly #cluster: ClusterClient | undefined
  readonly #keepers: Keeper[]
  readonly #sockets: Sockets
  readonly #clock: Clock
  readonly #timeout: number
  /** Settles when the primaries of a Cluster have been connected to for the first time, but for those that hang. */
  #primaries: Promise<void> | undefined

  constructor(template: Template, { clock, timeout, channel, received }: LinkOptions) {
    this.#clock = clock
    this.#timeout = timeout
    this.#commands = template.client(timeout)
    this.#cluster = template.isCluster ? (this.#commands as ClusterClient) : undefined
    this.#sockets = this.#cluster === undefined ? serverSockets(this.#commands) : clusterSockets(this.#cluster)
    // A client for a Cluster has a connection of its own for subscriptions.
    let subscriber: Client | undefined
    if (channel !== undefined) {
      const listening = this.#cluster ?? template.client(timeout)
      if (listening !== this.#commands) {
        serverSockets(listening)
        subscriber = listening
      }
      listening.on('message', (from: string, message: string) => {
        // Once ioredis has read on: what others throw is theirs, see `stream-guard.ts`.
        if (from === channel) queueMicrotask(() => received(message))
      })
      const subscribe = subscriberOf(channel, clock)
      listening.on('ready', () => subscribe(() => listening.subscribe(channel)))
    }
    // Silence is measured per connection, so a slow handshake may continue. The clients of a Cluster connect by themselves.
    const patience = this.#cluster === undefined ? timeout * PATIENCE : 2 * timeout
    this.#keepers = [new Keeper(this.#commands, clock, patience)]
    if (subscriber !== undefined) this.#keepers.push(new Keeper(subscriber, clock, patience))
  }

  async connected(): Promise<boolean> {
    if (!(await this.#keeper.connected())) return false
    if (this.#cluster !== undefined) {
      this.#primaries ??= connectPrimaries(this.#cluster, this.#clock, this.#timeout).catch((error: unknown) => {
        // The next exchange tries again.
        this.#primaries = undefined
        throw error
      })
      await this.#primaries
    }
    return true
  }

  get ready(): boolean {
    return this.#keeper.ready
  }

  get lastError(): unknown {
    return this.#keeper.lastError
  }

  run(script: Script, keys: readonly string[], argument: string): Promise<unknown> {
    return run(this.#commands, script, keys, argument)
  }

  call({ sha }: Script, keys: number, args: readonly string[]): Promise<unknown> {
    const reply = this.#commands.evalsha(sha, keys, ...args)
    // A command that comes alone is sent at once.
    this.#sockets.gather()
    return reply
  }

  send({ source }: Script, keys: number, args: readonly string[]): Promise<unknown> {
    return this.#commands.eval(source, keys, ...args)
  }

  remove(key: string, member: string): Promise<unknown> {
    return this.#commands.zrem(key, member)
  }

  silent(long: boolean): void {
    // Where one connection is silent, that of the subscription may be too, and nothing is sent on it that would show this.
    if (this.#cluster === undefined || long) for (const keeper of this.#keepers) keeper.renew()
    else this.#cluster.refreshSlotsCache?.()
  }

  hold(): void {
    this.#sockets.hold()
  }

  release(): void {
    this.#sockets.release()
  }

  close(): void {
    for (const keeper of this.#keepers) keeper.close()
  }

  get #keeper(): Keeper {
    return this.#keepers[0] as Keeper
  }
}

/**
 * ioredis connects to a primary at its first command, and rejects the next ones until that is done. One that hangs is waited for no longer
 * than an exchange: its keys alone have to do without it.
 */
async function connectPrimaries(cluster: ClusterClient, clock: Clock, patience: number): Promise<void> {
  let timer: TimerHandle
  const late = new Promise<void>((resolve) => {
    timer = clock.setTimeout(resolve, patience)
  })
  const all = cluster.nodes('master').map((primary) => {
    if (primary.status === 'ready') return undefined
    if (primary.status === 'wait') return primary.connect().catch(() => undefined)
    return new Promise<void>((resolve) => {
      primary.on('ready', resolve)
      primary.on('end', resolve)
    })
  })
  await Promise.race([Promise.all(all), late])
  clock.clearTimeout(timer)
}
