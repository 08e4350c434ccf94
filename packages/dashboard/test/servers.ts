import { createServer, type IncomingHttpHeaders, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createThrottler, memoryStore, slidingWindow, systemClock, type Throttler } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { onTestFinished } from 'vitest'
import type { Hello, View } from '../src/protocol.ts'

/** A throttler with two policies. With a hub it joins that hub's cluster. */
export function throttlerFor(hub: Hub = new Hub(systemClock)): Throttler {
  const throttler = createThrottler({
    store: memoryStore(hub),
    policies: [
      { name: 'user', limit: 100, interval: '1h', cooldown: '10m' },
      { name: 'tenant', limit: 1_000, interval: '1h', algorithm: slidingWindow() },
    ],
  })
  onTestFinished(() => throttler.close())
  return throttler.start()
}

/** Serves until the test ends. Returns the address without a slash at its end. */
export async function serve(listener: RequestListener, port = 0): Promise<{ url: string; port: number; server: Server }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const bound = (server.address() as AddressInfo).port
  return { url: `http://127.0.0.1:${bound}`, port: bound, server }
}

/** Sends an action like the page. */
export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Weir-Dashboard': '1', ...headers },
    body: JSON.stringify(body),
  })
}

export const PASSWORD = 'correct horse battery staple'

/** Sends the form of the sign-in page like a browser. `url` ends with a slash. */
export function signIn(url: string, password: string = PASSWORD, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams({ username: 'weir', password }) })
}

/** The cookies of an answer, for the next request. */
export function cookieOf(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.replace(/;.*/, ''))
    .join('; ')
}

/** A request with header fields that `fetch` can't set. */
export function send(
  url: string,
  { method = 'GET', headers = {}, body = '' }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        // A stream does not end without this.
        if (response.headers['content-type']?.startsWith('text/event-stream')) response.destroy()
      })
      response.on('error', () => {})
      response.on('close', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Reads a stream until a view passes. Returns this view and the stream's first message. */
export async function waitFor(url: string, passes: (view: View) => boolean): Promise<{ view: View; hello: Hello }> {
  const response = await fetch(url)
  let text = ''
  let hello: Hello | undefined
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [, name, data] = /event: (\w+)\ndata: (.*)/.exec(text.slice(0, end)) ?? []
      text = text.slice(end + 2)
      if (name === 'hello') hello = JSON.parse(data ?? '') as Hello
      if (name !== 'view') continue
      const view = JSON.parse(data ?? '') as View
      if (passes(view)) return { view, hello: hello as Hello }
    }
  }
  throw new Error('The stream ended.')
}
