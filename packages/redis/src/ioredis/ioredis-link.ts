import type { Clock, TimerHandle } from '@weir/core'
import { type Link, type LinkOptions, subscriberOf } from '../connection/link.ts'
import { run, type Script } from '../scripts/script.ts'
import { Keeper } from './keeper.ts'
import { clusterSockets, type Sockets, serverSockets } from './sockets.ts'
import type { Client, ClusterClient, Template } from './template.ts'

/** Part of the timeout after which a silent attempt to connect is given up, so that a server that is up again is used within a second. */
const PATIENCE = 0.5

/** The connections of one process by clients of ioredis. */
export class IoredisLink implements Link {
  heardAt: number = Number.NEGATIVE_INFINITY
  readonly #commands: Client
  readonly #cluster: ClusterClient | undefined
  readonly #keepers: Keeper[]
  readonly #sockets: Sockets
  readonly #clock: Clock
  readonly #timeout: number
  /** Resolves after the first connections to all primaries of a Cluster. It doesn't wait for primaries that hang. */
  #primaries: Promise<void> | undefined

  constructor(template: Template, { clock, timeout, channel, received }: LinkOptions) {
    this.#clock = clock
    this.#timeout = timeout
    this.#commands = template.client(timeout)
    this.#cluster = template.isCluster ? (this.#commands as ClusterClient) : undefined
    this.#cluster?.on('end', () => {
      this.#primaries = undefined
    })
    this.#sockets = this.#cluster === undefined ? serverSockets(this.#commands) : clusterSockets(this.#cluster)
    // A client for a Cluster has its own connection for subscriptions.
    let subscriber: Client | undefined
    if (channel !== undefined) {
      const listening = this.#cluster ?? template.client(timeout)
      if (listening !== this.#commands) {
        serverSockets(listening)
        subscriber = listening
      }
      listening.on('message', (from: string, message: string) => {
        // Deferred until ioredis has read on, because `stream-guard.ts` would treat an error of the receiver as an error of ioredis.
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
        // The next sync tries again.
        this.#primaries = undefined
        throw error
      })
      await this.#primaries
    }
    return true
  }

  async replaced(): Promise<boolean> {
    return !this.ready && (await this.connected())
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
    // Called after the command, so that a single command is sent immediately. Further commands of this turn are sent together.
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
    // If one connection is silent, the subscription's may be too, and no command on it would show that.
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
 * Connects to all primaries. ioredis does this only at a primary's first command, and rejects further commands meanwhile. A primary that
 * hangs is not waited for longer than the timeout, and only its keys fail.
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
