import { connect, type Socket } from 'node:net'

/** A response as it was received. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const NONE: Reply = { status: 0, headers: {}, body: '' }

/** A connection that sends given bytes unchanged, and reconnects after the server has closed it. */
export class Wire {
  readonly #port: number
  #socket: Socket | undefined
  #buffer = Buffer.alloc(0)
  #waiting: ((reply: Reply) => void) | undefined
  #head = false

  constructor(port: number) {
    this.#port = port
  }

  /** Sends one request. The status is 0 if no response arrived within `patience` ms or the connection was closed instead. */
  send(text: string | Buffer, patience = 5_000): Promise<Reply> {
    return new Promise((resolve) => {
      const socket = this.#open()
      const timer = setTimeout(() => {
        this.close()
        settle(NONE)
      }, patience)
      const settle = (reply: Reply): void => {
        clearTimeout(timer)
        this.#waiting = undefined
        resolve(reply)
      }
      this.#waiting = settle
      this.#head = text.slice(0, 5).toString() === 'HEAD '
      // Each character is one byte.
      socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
    })
  }

  /** Sends a request with the given request line, fields and body. */
  request(method: string, target: string, headers: Readonly<Record<string, string>> = {}, body = ''): Promise<Reply> {
    return this.send(requestText(method, target, headers, body))
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
    this.#buffer = Buffer.alloc(0)
  }

  #open(): Socket {
    if (this.#socket !== undefined) return this.#socket
    const socket = connect(this.#port, '127.0.0.1')
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (data) => {
      this.#buffer = Buffer.concat([this.#buffer, data])
      this.#read(false)
    })
    const gone = (): void => {
      if (this.#socket !== socket) return
      this.#read(true)
      this.close()
      this.#waiting?.(NONE)
    }
    socket.on('error', gone)
    socket.on('end', gone)
    socket.on('close', gone)
    return socket
  }

  #read(over: boolean): void {
    const parsed = parseReply(this.#buffer, { over, head: this.#head })
    if (parsed === undefined) return
    this.#buffer = this.#buffer.subarray(parsed.length)
    this.#waiting?.(parsed.reply)
  }
}

export function requestText(method: string, target: string, headers: Readonly<Record<string, string>> = {}, body = ''): string {
  const fields = { Host: 'h', ...headers, ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }) }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

/** The first response in a buffer, if it is complete. */
export function parseReply(
  buffer: Buffer,
  { over = false, head = false }: { readonly over?: boolean; readonly head?: boolean } = {},
): { readonly reply: Reply; readonly length: number } | undefined {
  const end = buffer.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = buffer.toString('latin1', 0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const status = Number(first.split(' ')[1])
  const start = end + 4
  const declared = head || status === 204 || status === 304 ? 0 : headers['content-length']
  if (declared === undefined && headers['transfer-encoding'] === 'chunked') {
    const last = buffer.indexOf('\r\n0\r\n\r\n', start - 2)
    if (last < 0 && !over) return undefined
    const length = last < 0 ? buffer.length : last + 7
    return { reply: { status, headers, body: buffer.toString('latin1', start, length) }, length }
  }
  if (declared === undefined && !over) return undefined
  const length = declared === undefined ? buffer.length : start + Number(declared)
  if (buffer.length < length && !over) return undefined
  return { reply: { status, headers, body: buffer.toString('latin1', start, length) }, length }
}

/** Sends many requests over a few connections. `make` returns the i-th request. */
export async function flood(port: number, count: number, make: (i: number) => string, wires = 8): Promise<Reply[]> {
  const replies: Reply[] = new Array(count)
  let next = 0
  await Promise.all(
    Array.from({ length: wires }, async () => {
      const wire = new Wire(port)
      for (let i = next++; i < count; i = next++) replies[i] = await wire.send(make(i))
      wire.close()
    }),
  )
  return replies
}

/** The number of responses from a handler. */
export function reached(replies: readonly Reply[]): number {
  return replies.filter(({ status, headers }) => status === 200 && headers['x-handler'] !== undefined).length
}
