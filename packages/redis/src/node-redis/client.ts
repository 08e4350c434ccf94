/** The parts that are used of our own client of the `redis` package, version 5 or later. */
export interface Client {
  connect(): Promise<unknown>
  destroy(): void
  sendCommand(command: readonly string[]): Promise<unknown>
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  on(event: string, listener: (error?: unknown) => void): unknown
  ref(): void
  unref(): void
}

/** Options of a client, as far as they are looked at. */
export interface ClientOptions {
  readonly url?: string
  readonly database?: number
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string }
}

/**
 * Settings that our connections need, whatever the user's client has. The client must not queue or resend commands, because the throttler
 * sends a failed batch again with newer counts. `Connection` reconnects, with short delays.
 */
export function connectionSettings({ socket }: ClientOptions, timeout: number): ClientOptions {
  const settings = {
    socket: { ...socket, reconnectStrategy: false, connectTimeout: timeout, socketTimeout: undefined },
    disableOfflineQueue: true,
    commandsQueueMaxLength: undefined,
    // Replies are read as text, and keys are whole.
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

/** Closes a client, in whatever state it is; version 5 throws for one that is closed. */
export function destroy(client: Client): void {
  try {
    client.destroy()
  } catch {
    // It was closed already.
  }
}
