import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { isAllowed, isSameOrigin } from './access.ts'
import { type ActionName, act, BadAction, readAction } from './actions.ts'
import { type CheckedOptions, checkOptions, type DashboardOptions } from './options.ts'
import { BUILD, PAGE, SCRIPT_HASH, STYLE_HASH } from './page.generated.ts'
import type { DashboardThrottler } from './source.ts'
import { Stream } from './stream.ts'

/** Nothing but this page's own script and style runs, nothing is loaded, nobody frames it. */
const POLICY = [
  "default-src 'none'",
  `script-src '${SCRIPT_HASH}'`,
  `style-src '${STYLE_HASH}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const REFUSED = `Weir's page is shown on this machine only, until it is told who may see it:

    dashboard(throttler, { authorize: (request) => … })
`

/** A handler of `node:http`, which is also a middleware of Express. */
export interface DashboardHandler {
  (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void
  /** Ends all streams, which a server that closes would otherwise wait for. */
  close(): void
}

/**
 * A live page about a throttler and the cluster that it is part of. It works under any path; see `path` for servers that
 * leave the mount path in `request.url`.
 *
 * @throws WeirError for options that can't be used
 *
 * @example
 * app.use('/weir', dashboard(throttler, { authorize: (request) => isOperator(request) }))
 */
export function dashboard(throttler: DashboardThrottler, options: DashboardOptions = {}): DashboardHandler {
  const made = new Dashboard(throttler, checkOptions(options))
  const handler = (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void => {
    made.handle(request, response, next).catch((error: unknown) => {
      if (next !== undefined && !response.headersSent) next(error)
      else if (response.headersSent) response.destroy()
      else answer(response, 500, 'Something went wrong.\n')
    })
  }
  return Object.assign(handler, { close: () => made.close() })
}

class Dashboard {
  readonly #throttler: DashboardThrottler
  readonly #options: CheckedOptions
  readonly #stream: Stream
  #zipped: Buffer | undefined

  constructor(throttler: DashboardThrottler, options: CheckedOptions) {
    this.#throttler = throttler
    this.#options = options
    this.#stream = new Stream(throttler, BUILD)
  }

  close(): void {
    this.#stream.close()
  }

  async handle(request: IncomingMessage, response: ServerResponse, next?: () => void): Promise<void> {
    const whole = pathOf((request as { originalUrl?: string }).originalUrl ?? request.url)
    const { path } = this.#options
    if (path !== undefined && whole !== path && !whole.startsWith(`${path}/`)) {
      if (next === undefined) answer(response, 404, 'Not found.\n')
      else next()
      return
    }
    const method = request.method ?? 'GET'
    const name = whole.slice(whole.lastIndexOf('/') + 1)
    if (method === 'POST' && (name === 'block' || name === 'unblock' || name === 'find')) {
      await this.#act(request, response, name)
      return
    }
    if (method !== 'GET' && method !== 'HEAD') {
      answer(response, 405, 'Only GET.\n', { Allow: 'GET, HEAD' })
      return
    }
    if (!(await isAllowed(request, 'view', this.#options))) {
      answer(response, 403, this.#options.authorize === undefined ? REFUSED : 'Forbidden.\n')
      return
    }
    if (name === 'events' && method === 'GET') await this.#open(request, response)
    else if (name === '') this.#page(request, response)
    // Relative, so that it is right whatever a proxy has cut off. The page's own addresses need the slash.
    else answer(response, 302, 'See there.\n', { Location: `./${encodeURI(decode(name))}/` })
  }

  #page(request: IncomingMessage, response: ServerResponse): void {
    const headers = {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': POLICY,
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      Vary: 'Accept-Encoding',
    }
    if (/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
      this.#zipped ??= gzipSync(PAGE)
      answer(response, 200, request.method === 'HEAD' ? '' : this.#zipped, { ...headers, 'Content-Encoding': 'gzip' })
    } else answer(response, 200, request.method === 'HEAD' ? '' : PAGE, headers)
  }

  async #open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#stream.clients >= this.#options.maxClients) {
      answer(response, 503, 'Too many pages are open.\n', { 'Retry-After': '10' })
      return
    }
    const actions = this.#options.actions && (await isAllowed(request, 'act', this.#options))
    this.#stream.add(response, actions)
  }

  async #act(request: IncomingMessage, response: ServerResponse, name: ActionName): Promise<void> {
    const access = name === 'find' ? 'view' : 'act'
    const allowed =
      (access === 'view' || this.#options.actions) && isSameOrigin(request) && (await isAllowed(request, access, this.#options))
    if (!allowed) {
      json(response, 403, { error: 'Not allowed.' })
      return
    }
    try {
      const found = act(this.#throttler, name, await readAction(request))
      this.#stream.changed()
      json(response, 200, found ?? { done: true })
    } catch (error) {
      if (!(error instanceof BadAction)) throw error
      json(response, 400, { error: error.message })
    }
  }
}

function pathOf(url = '/'): string {
  const end = url.search(/[?#]/)
  return end < 0 ? url : url.slice(0, end)
}

function decode(text: string): string {
  try {
    return decodeURI(text)
  } catch {
    return ''
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  answer(response, status, JSON.stringify(body), { 'Content-Type': 'application/json; charset=utf-8' })
}

function answer(response: ServerResponse, status: number, body: string | Buffer, headers: Record<string, string> = {}): void {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  })
  response.end(body)
}
