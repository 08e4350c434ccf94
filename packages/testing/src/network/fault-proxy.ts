import { createServer, type Server, Socket } from 'node:net'
import { ProxiedConnection } from './proxied-connection.ts'
import { NO_FAULTS, type ProxyFaults } from './proxy-faults.ts'

/** Options of `faultProxy`. */
export interface FaultProxyOptions {
  /** Sets the port of the real server. */
  readonly port: number
  /**
   * Sets the address of the real server.
   *
   * @default '127.0.0.1'
   */
  readonly host?: string
  /**
   * Sets the port of the proxy on the loopback interface.
   *
   * @default a free port
   */
  readonly listen?: number
}

/** A TCP proxy between a client and a real server that produces network faults on demand. */
export interface FaultProxy {
  /** The port for clients, on the loopback interface. */
  readonly port: number
  /** The number of open client connections. */
  readonly connections: number
  /** Bytes of replies that did not reach their client. */
  readonly lostBytes: number
  /** Changes the given faults. All others stay as they are. */
  set(faults: Partial<ProxyFaults>): void
  /** Ends all faults. Half-open connections are reset, because their ends are out of step. */
  heal(): void
  /** Resets all connections (RST). New ones can be opened. */
  reset(): void
  /** Closes all connections and stops listening. */
  close(): Promise<void>
}

/**
 * Starts a proxy in front of a server.
 *
 * @example
 * const proxy = await faultProxy({ port: 6379 })
 * const store = redisStore({ port: proxy.port })
 * proxy.set({ loseReplies: true })
 */
export async function faultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const proxy = new TcpFaultProxy(options)
  await proxy.listen(options.listen ?? 0)
  return proxy
}

class TcpFaultProxy implements FaultProxy {
  faults: ProxyFaults = NO_FAULTS
  lostBytes = 0
  readonly #server: Server
  readonly #open = new Set<ProxiedConnection>()
  #port = 0

  constructor({ port, host = '127.0.0.1' }: FaultProxyOptions) {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      if (this.faults.reject) {
        client.on('error', () => {})
        client.resetAndDestroy()
        return
      }
      const connect = (): Socket => new Socket({ allowHalfOpen: true }).setNoDelay(true).connect(port, host)
      const connection = new ProxiedConnection(client, connect, this, () => this.#open.delete(connection))
      this.#open.add(connection)
    })
  }

  get port(): number {
    return this.#port
  }

  get connections(): number {
    return this.#open.size
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', resolve)
    })
    const address = this.#server.address()
    if (typeof address === 'object' && address !== null) this.#port = address.port
  }

  set(faults: Partial<ProxyFaults>): void {
    const wasHalfOpen = this.faults.halfOpen
    this.faults = { ...this.faults, ...faults }
    if (wasHalfOpen && !this.faults.halfOpen) this.reset()
  }

  heal(): void {
    this.set(NO_FAULTS)
  }

  reset(): void {
    for (const connection of [...this.#open]) connection.reset()
  }

  async close(): Promise<void> {
    this.reset()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
  }
}
