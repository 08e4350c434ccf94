import type { Clock } from '@weir/core'
import { type Link, type LinkOptions, subscriberOf } from '../connection/link.ts'
import { run, type Script } from '../scripts/script.ts'
import type { Client } from './client.ts'
import { Connection, type ConnectionOptions } from './connection.ts'

/** The connections of one process to one server, which Sentinels may have chosen. */
export class ServerLink implements Link {
  heardAt: number = Number.NEGATIVE_INFINITY
  readonly #commands: Connection
  readonly #subscriber: Connection | undefined

  constructor(make: ConnectionOptions['make'], { clock, timeout, channel, received }: LinkOptions) {
    const options: ConnectionOptions = { clock, patience: timeout, make }
    this.#commands = new Connection(options)
    if (channel !== undefined) this.#subscriber = new Connection({ ...options, opened: subscription(channel, clock, received) })
  }

  get ready(): boolean {
    return this.#commands.ready
  }

  get lastError(): unknown {
    return this.#commands.lastError
  }

  connected(): Promise<boolean> {
    return this.#commands.connected()
  }

  replaced(): Promise<boolean> {
    return this.#commands.replaced()
  }

  run(script: Script, keys: readonly string[], argument: string): Promise<unknown> {
    return run(
      {
        evalsha: (sha, count, ...args) => this.#commands.command('EVALSHA', sha, String(count), ...args),
        eval: (source, count, ...args) => this.#commands.command('EVAL', source, String(count), ...args),
      },
      script,
      keys,
      argument,
    )
  }

  call({ sha }: Script, keys: number, args: readonly string[]): Promise<unknown> {
    return this.#commands.command('EVALSHA', sha, String(keys), ...args)
  }

  send({ source }: Script, keys: number, args: readonly string[]): Promise<unknown> {
    return this.#commands.command('EVAL', source, String(keys), ...args)
  }

  remove(key: string, member: string): Promise<unknown> {
    return this.#commands.command('ZREM', key, member)
  }

  /** Renews both connections. If one is silent, the other may be too, and no command on it would show that. */
  silent(): void {
    this.#commands.renew()
    this.#subscriber?.renew()
  }

  hold(): void {
    this.#commands.hold()
  }

  release(): void {
    this.#commands.release()
  }

  close(): void {
    this.#commands.close()
    this.#subscriber?.close()
  }
}

/** Subscribes each new connection to a channel. */
export function subscription(channel: string, clock: Clock, received: (message: string) => void): (client: Client) => void {
  const subscribe = subscriberOf(channel, clock)
  // Deferred, because a listener that throws must not break the client's parser.
  const listener = (message: string): void => queueMicrotask(() => received(message))
  return (client) => subscribe(() => client.subscribe(channel, listener))
}
