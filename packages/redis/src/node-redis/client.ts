/** The parts of the store's own client of the `redis` package, version 5 or later, that are used. */
export interface Client {
  connect(): Promise<unknown>
  destroy(): void
  sendCommand(command: readonly string[]): Promise<unknown>
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  on(event: string, listener: (error?: unknown) => void): unknown
  ref(): void
  unref(): void
}

/** The parts of a client's options that are used. */
export interface ClientOptions {
  readonly url?: string
  readonly database?: number
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string }
}

/**
 * Settings for the store's own connections, which override the user's. The client must not queue or resend commands, because the throttler
 * sends a failed batch again with newer counts. `Connection` reconnects, with short delays, and gives up
 * an attempt earlier than the client would. It doesn't count time in which a busy process could not read.
 */
export function connectionSettings({ socket }: ClientOptions, timeout: number): ClientOptions {
  const settings = {
    socket: { ...socket, reconnectStrategy: false, connectTimeout: 5 * timeout, socketTimeout: undefined },
    disableOfflineQueue: true,
    commandsQueueMaxLength: undefined,
    // Replies must be texts, and keys must have no prefix.
    commandOptions: {},
    keyPrefix: undefined,
    pingInterval: undefined,
    readonly: false,
    clientSideCache: undefined,
    emitInvalidate: false,
    maintNotifications: 'disabled',
  }
  return settings as ClientOptions
}

/** Closes a client in any state. Version 5 throws if it is closed already. */
export function destroy(client: Client): void {
  try {
    client.destroy()
  } catch {
    // It was closed already.
  }
}
