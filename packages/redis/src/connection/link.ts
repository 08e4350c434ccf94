import { type Clock, type TimerHandle, WeirError } from '@weir/core'
import type { Script } from '../scripts/script.ts'

export interface LinkOptions {
  readonly clock: Clock
  /** Milliseconds after which a sync counts as failed. */
  readonly timeout: number
  /** The channel of announcements, undefined for none. */
  readonly channel: string | undefined
  received(message: string): void
}

/** The server and the way to it: everything that depends on the client library. */
export interface Target {
  readonly isCluster: boolean
  readonly db: number
  /** The server's address by the settings. Equal settings have the same address. */
  readonly address: string
  open(options: LinkOptions): Link
}

/**
 * The connections of one process: one for scripts (or one to each primary of a Cluster), and another for announcements. They are opened and
 * replaced in the background. They queue no commands. If a connection was lost, callers may send a command again once it is replaced.
 */
export interface Link {
  /** The time of the last reply of any server, on the process's monotonic clock. Callers of the link set it. */
  heardAt: number
  readonly ready: boolean
  /** The reason why there is no connection, if one is known. */
  readonly lastError: unknown
  /** Returns whether a command can be sent now. Waits for the first attempt to connect, and for the replacement of a lost connection. */
  connected(): Promise<boolean>
  /**
   * Waits for the replacement of a key's connection after a command has failed. Returns whether the command can be sent again: false if the
   * connection was not lost, or was not replaced soon.
   */
  replaced(key: string): Promise<boolean>
  /** Runs a script by its SHA-1. A server that does not have the script gets its source. */
  run(script: Script, keys: readonly string[], argument: string): Promise<unknown>
  /**
   * Runs a script by its SHA-1, for frequent calls. Calls in the same turn of the event loop are sent together. If the server does not have
   * the script, the caller must `send` it.
   *
   * @param args the keys, then the arguments
   */
  call(script: Script, keys: number, args: readonly string[]): Promise<unknown>
  /** Does the same as `call`, but with the text of the script. */
  send(script: Script, keys: number, args: readonly string[]): Promise<unknown>
  /** Removes a member of a sorted set. */
  remove(key: string, member: string): Promise<unknown>
  /**
   * Reports that a server did not answer in time. A Cluster looks up its primaries again, and other links open a new connection. With
   * `long`, a Cluster opens new connections too.
   */
  silent(long: boolean): void
  /** Keeps the process alive until `release`. */
  hold(): void
  release(): void
  close(): void
}

/** Milliseconds after which a rejected subscription is tried again. */
const SUBSCRIBE_AGAIN = 5_000

/**
 * Subscribes connections to a channel. A lost connection subscribes again when it is back. A rejection costs accuracy and would go
 * unnoticed, so it causes one warning, and is tried again because permissions change.
 */
export function subscriberOf(channel: string, clock: Clock): (subscribe: () => Promise<unknown>) => void {
  let warned = false
  let again: TimerHandle
  const ask = (subscribe: () => Promise<unknown>): void => {
    subscribe().catch((error: unknown) => {
      if (!(error instanceof Error) || !/^(NOPERM|ERR)/.test(error.message)) return
      clock.clearTimeout(again)
      // If the connection has ended by then, this fails with another error, and is not tried again.
      again = clock.setTimeout(() => ask(subscribe), SUBSCRIBE_AGAIN)
      if (warned) return
      warned = true
      // A WeirError, because its message is safe to print even if the server's text is not.
      const { code, message } = new WeirError(
        'WEIR_STORE_UNAVAILABLE',
        `Can't SUBSCRIBE to the channel ${channel} (${error.message}), so limits are less accurate. Give this user the permissions under "Permissions" in the README of @weir/redis.`,
      )
      process.emitWarning(message, { type: 'WeirWarning', code })
    })
  }
  return ask
}
