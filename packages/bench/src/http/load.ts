import { connect, type Socket } from 'node:net'

/** Statuses of answers, and their counts. */
export type Statuses = Readonly<Record<string, number>>

const REQUEST = Buffer.from('GET / HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n')

/**
 * A client that needs little CPU, so that one core is free for the server: a few connections, each of which sends a request when
 * the previous answer has arrived. Answers need a content length.
 */
export class Load {
  readonly #sockets: Socket[] = []

  static async open(port: number, connections: number): Promise<Load> {
    const load = new Load()
    for (let i = 0; i < connections; i++) {
      const socket = connect(port, '127.0.0.1')
      await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
      socket.setNoDelay(true)
      load.#sockets.push(socket)
    }
    return load
  }

  /** Sends `count` requests. */
  run(count: number): Promise<Statuses> {
    const statuses: Record<string, number> = {}
    let asked = 0
    let answered = 0
    return new Promise((resolve, reject) => {
      for (const socket of this.#sockets) {
        let pending = ''
        const ask = () => {
          if (asked++ < count) socket.write(REQUEST)
        }
        const receive = (chunk: Buffer) => {
          pending += chunk.toString('latin1')
          const head = pending.indexOf('\r\n\r\n')
          if (head < 0) return
          const length = /\r\ncontent-length: (\d+)/i.exec(pending)
          if (length === null) return reject(new Error(`An answer without a length: ${pending}`))
          if (pending.length < head + 4 + Number(length[1])) return
          const status = pending.slice(9, 12)
          pending = ''
          statuses[status] = (statuses[status] ?? 0) + 1
          if (++answered === count) {
            for (const one of this.#sockets) one.removeAllListeners('data')
            resolve(statuses)
          } else ask()
        }
        socket.on('data', receive)
        ask()
      }
    })
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
