import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as overHttp } from 'node:http'
import { Agent as HttpsAgent, request as overHttps } from 'node:https'
import type { EtcdTls } from './options.ts'

/** The most characters of a reply. Replies come in pages, and the longest contains ten documents of rules. */
const LONGEST_ANSWER = 64 * 1024 * 1024
/** The most connections to one endpoint. Further requests wait for a free one. */
const MOST_CONNECTIONS = 32

/** A rejection by etcd, with its message. */
export class EtcdError extends Error {
  /** A gRPC code, for example 14 for unavailable. -1 if etcd returned none. */
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** A request without a reply: etcd may have received it or not. */
export class Unreachable extends Error {
  /** Whether a connection that had been idle ended without a reply. It may have been dead for long, and a new one may be good. */
  readonly wasIdle: boolean

  constructor(message: string, cause?: Error, wasIdle = false) {
    super(message, { cause })
    this.wasIdle = wasIdle
  }
}

export interface Answer {
  readonly body: unknown
  /** The server's time from the `Date` header, in milliseconds since the epoch with a resolution of one second. NaN without the header. */
  readonly date: number
}

/** A member of the cluster, reached through its JSON gateway. Idle connections don't keep the process alive, but requests do. */
export class Endpoint {
  readonly #url: URL
  readonly #tls: EtcdTls
  #agent: HttpAgent

  constructor(url: URL, tls: EtcdTls) {
    this.#url = url
    this.#tls = tls
    this.#agent = this.#newAgent(MOST_CONNECTIONS)
  }

  /** @param begun receives a function that ends the request before its reply arrives */
  post(path: string, body: string, token: string | undefined, begun: (end: (why: Error) => void) => void): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = this.#request(path, body, token, this.#agent)
      begun((why) => request.destroy(why))
      request.on('error', (error) => reject(new Unreachable(error.message, error, request.reusedSocket)))
      request.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => {
          text += part
          if (text.length > LONGEST_ANSWER) request.destroy(new Error('the answer is too long'))
        })
        response.on('error', (error) => reject(new Unreachable(error.message, error)))
        // The connection ended in the middle of a response.
        response.on('close', () => reject(new Unreachable('the connection was closed')))
        response.on('end', () => {
          try {
            resolve({ body: bodyOf(text, response.statusCode ?? 0), date: Date.parse(response.headers.date ?? '') })
          } catch (error) {
            reject(error)
          }
        })
      })
      request.end(body)
    })
  }

  /**
   * Requests a stream of lines, on a separate connection that does not keep the process alive.
   *
   * @returns a function that ends it, without a call of `ended`
   */
  stream(path: string, body: string, token: string | undefined, line: (value: unknown) => void, ended: (why: Error) => void): () => void {
    const agent = this.#newAgent(1)
    const request = this.#request(path, body, token, agent)
    let over = false
    const end = (why: Error): void => {
      if (over) return
      stop()
      ended(why)
    }
    const stop = (): void => {
      over = true
      request.destroy()
      agent.destroy()
    }
    request.on('socket', (socket) => socket.unref())
    request.on('error', end)
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        const lines = (text + part).split('\n')
        text = lines.pop() ?? ''
        if (text.length > LONGEST_ANSWER) return end(new Error('a line is too long'))
        try {
          for (const one of lines) if (one !== '' && !over) line(bodyOf(one, response.statusCode ?? 0))
        } catch (error) {
          end(error as Error)
        }
      })
      response.on('error', end)
      response.on('close', () => end(new Error(text === '' ? 'the connection was closed' : text.slice(0, 200))))
    })
    request.end(body)
    return stop
  }

  /** Closes connections without a request. */
  dropIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
  }

  /** Closes all connections. The next request opens a new one. */
  drop(): void {
    this.#agent.destroy()
    this.#agent = this.#newAgent(MOST_CONNECTIONS)
  }

  close(): void {
    this.#agent.destroy()
  }

  #request(path: string, body: string, token: string | undefined, agent: HttpAgent): ClientRequest {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(token !== undefined && { authorization: token }),
    }
    const url = new URL(path, this.#url)
    return url.protocol === 'https:'
      ? overHttps(url, { method: 'POST', headers, agent: agent as HttpsAgent })
      : overHttp(url, { method: 'POST', headers, agent })
  }

  #newAgent(maxSockets: number): HttpAgent {
    if (this.#url.protocol === 'http:') return new HttpAgent({ keepAlive: true, maxSockets })
    const { ca, cert, key, servername } = this.#tls
    return new HttpsAgent({
      keepAlive: true,
      maxSockets,
      ...(ca !== undefined && { ca: (Array.isArray(ca) ? [...ca] : ca) as string }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(servername !== undefined && { servername }),
    })
  }
}

/** Returns the body of a response. @throws EtcdError if etcd rejected the request */
function bodyOf(text: string, status: IncomingMessage['statusCode'] & number): unknown {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new EtcdError(-1, `HTTP status ${status} and no JSON. Is this etcd 3.4 or newer?`)
  }
  if (status === 200) return body
  const { code, message, error } = (typeof body === 'object' && body !== null ? body : {}) as { readonly [name: string]: unknown }
  const why = typeof message === 'string' ? message : typeof error === 'string' ? error : `HTTP status ${status}`
  throw new EtcdError(typeof code === 'number' ? code : -1, why.slice(0, 500))
}
