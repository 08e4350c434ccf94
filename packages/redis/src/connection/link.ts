import { type Clock, type TimerHandle, WeirError } from '@weir/core'
import type { Script } from '../scripts/script.ts'

export interface LinkOptions {
  readonly clock: Clock
  /** Milliseconds after which an exchange counts as failed. */
  readonly timeout: number
  /** Undefined to do without announcements. */
  readonly channel: string | undefined
  received(message: string): void
}

/** Where a store is, and how it is reached: all that depends on the client library. */
export interface Target {
  readonly isCluster: boolean
  readonly db: number
  /** Where the server is, as far as the settings say: the same for the same ones. */
  readonly address: string
  open(options: LinkOptions): Link
}

/**
 * One node's connections: one for scripts (one to each primary of a Cluster), and one that listens to announcements. They are
 * made and renewed in the background, queue nothing, and send nothing twice.
 */
export interface Link {
  /** When a server answered last, on the node's monotonic clock. Whoever asks it keeps it. */
  heardAt: number
  readonly ready: boolean
  /** Why there is no connection, as far as is known. */
  readonly lastError: unknown
  /** Whether a command can be sent now; waits for the very first attempt to connect. */
  connected(): Promise<boolean>
  /** Runs a script by its name; a server that has forgotten it gets the source. */
  run(script: Script, keys: readonly string[], argument: string): Promise<unknown>
  /**
   * As `run`, for what is called very often: what follows in the same turn of the event loop goes out together, and a script that the server
   * does not know is for the caller to `send`.
   *
   * @param args the keys, then the arguments
   */
  call(script: Script, keys: number, args: readonly string[]): Promise<unknown>
  /** As `call`, with the text of the script. */
  send(script: Script, keys: number, args: readonly string[]): Promise<unknown>
  /** Takes a member out of a sorted set. */
  remove(key: string, member: string): Promise<unknown>
  /** A server did not answer in time: look for another one (Cluster), or make a new connection to it. */
  silent(long: boolean): void
  /** The process may not end before `release`. */
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
      // Safe to print, whatever the server said.
      const { code, message } = new WeirError(
        'WEIR_STORE_UNAVAILABLE',
        `Can't SUBSCRIBE to the channel ${channel} (${error.message}); limits are less accurate. Give this user the permissions under "Permissions" in the README of @weir/redis.`,
      )
      process.emitWarning(message, { type: 'WeirWarning', code })
    })
  }
  return ask
}
