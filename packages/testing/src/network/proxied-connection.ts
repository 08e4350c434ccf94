import type { Socket } from 'node:net'
import type { ProxyFaults } from './proxy-faults.ts'

/** The proxy of a connection. Its faults change while the connection is open. */
interface Proxy {
  readonly faults: ProxyFaults
  lostBytes: number
}

/** One client's connection through a fault proxy: its own socket, one to the server, and one for duplicates if they are on. */
export class ProxiedConnection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #duplicate: Socket | undefined
  readonly #proxy: Proxy
  readonly #closed: () => void
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #held: Buffer[] = []
  /** The time at which the last delayed piece of a reply leaves. No later piece may overtake it. */
  #deliverAt = Number.NEGATIVE_INFINITY
  #repliedBytes = 0
  #ended = false

  constructor(client: Socket, connect: () => Socket, proxy: Proxy, closed: () => void) {
    this.#client = client
    this.#proxy = proxy
    this.#closed = closed
    this.#server = connect()
    const late = proxy.faults.duplicate
    if (late !== undefined) this.#duplicate = this.#startDuplicate(connect())

    client.on('data', (piece) => this.#request(piece, late))
    this.#server.on('data', (piece) => this.#reply(piece))
    client.on('end', () => this.#endOf(client))
    this.#server.on('end', () => this.#endOf(this.#server))
    for (const socket of [client, this.#server]) {
      socket.on('error', () => this.reset())
      socket.on('close', () => {
        if (!this.#proxy.faults.halfOpen) this.reset()
      })
    }
  }

  /** Ends all sockets by RST, so that both ends notice immediately. */
  reset(): void {
    if (this.#ended) return
    this.#ended = true
    for (const timer of this.#timers) clearTimeout(timer)
    for (const socket of [this.#client, this.#server, this.#duplicate]) {
      if (socket === undefined || socket.destroyed) continue
      // A socket that is still connecting has nothing to reset.
      if (socket.connecting) socket.destroy()
      else socket.resetAndDestroy()
    }
    this.#closed()
  }

  #startDuplicate(duplicate: Socket): Socket {
    duplicate.on('error', () => {})
    // Unread data would fill the TCP window, and the server would wait.
    duplicate.resume()
    return duplicate
  }

  #request(piece: Buffer, late: number | undefined): void {
    if (this.#proxy.faults.halfOpen || this.#ended) return
    this.#server.write(piece)
    if (this.#duplicate !== undefined) this.#after(late ?? 0, () => this.#duplicate?.write(piece))
  }

  #reply(piece: Buffer): void {
    const { latency, loseReplies, halfOpen } = this.#proxy.faults
    if (this.#ended) return
    if (loseReplies || halfOpen) {
      this.#proxy.lostBytes += piece.length
      return
    }
    const now = performance.now()
    this.#deliverAt = Math.max(now + latency, this.#deliverAt)
    if (this.#deliverAt <= now && this.#held.length === 0) this.#deliver(piece)
    else this.#deliverLater(piece, this.#deliverAt)
  }

  #deliverLater(piece: Buffer, at: number): void {
    this.#held.push(piece)
    // Timers may fire in a different order than their deadlines. The pieces must keep their order.
    this.#after(at - performance.now(), () => this.#deliver(this.#held.shift() ?? piece))
  }

  #deliver(piece: Buffer): void {
    if (this.#ended) return
    const { resetAfterBytes: resetAfterMs } = this.#proxy.faults
    if (resetAfterMs === undefined) {
      this.#repliedBytes = 0
      this.#client.write(piece)
      return
    }
    const left = Math.max(0, resetAfterMs - this.#repliedBytes)
    this.#repliedBytes += piece.length
    if (piece.length <= left) {
      this.#client.write(piece)
      return
    }
    this.#proxy.lostBytes += piece.length - left
    if (left === 0) this.reset()
    // A reset drops unsent data, but the client must get the start of the reply.
    else this.#client.write(piece.subarray(0, left), () => this.#after(5, () => this.reset()))
  }

  #endOf(socket: Socket): void {
    if (this.#proxy.faults.halfOpen || this.#ended) return
    if (socket === this.#client) {
      this.#server.end()
      this.#duplicate?.end()
    } else this.#client.end()
  }

  #after(delay: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, delay)
    this.#timers.add(timer)
  }
}
