import { createServer, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request that both programs get, one after the other. */
export interface Sent {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer. */
export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export type App = RequestListener | Server

/** An option of a peer and its replacement: both programs must answer the same requests alike. */
export interface Case {
  /** The peer's options, with the names of its types and of the page. */
  readonly options: readonly string[]
  peer(): App | Promise<App>
  weir(): App | Promise<App>
  readonly requests: readonly Sent[]
  /** Returns the part of an answer that is compared, beside its status. Default: nothing. */
  readonly same?: (answer: Answer) => unknown
  /** The expected statuses. */
  readonly statuses: readonly number[]
}

/** Repeats the same request. */
export const times = (count: number, sent: Sent = {}): Sent[] => Array.from({ length: count }, () => sent)

/** A request with one header. */
export const as = (name: string, value: string, path = '/'): Sent => ({ path, headers: { [name]: value } })

/** Reads fields of an answer. */
export const field =
  (...names: string[]) =>
  ({ headers }: Answer): unknown =>
    names.map((name) => headers[name.toLowerCase()])

/** The answers of a program, which listens until the test ends. */
export async function answersOf(app: App, requests: readonly Sent[]): Promise<Answer[]> {
  const server = typeof app === 'function' ? createServer(app) : app
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const answers: Answer[] = []
  for (const sent of requests) answers.push(await ask(port, sent))
  return answers
}

function ask(port: number, { path = '/', method = 'GET', headers = {} }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', path, method, headers: { ...headers, connection: 'close' } }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ status: response.statusCode as number, body, headers: response.headers }))
      response.on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}
