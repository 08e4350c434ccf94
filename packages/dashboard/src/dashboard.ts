import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { auditLog, recordAction } from '@weir/core/inspect'
import type { Gate, Grant, Sender, Visit } from './access/gate.ts'
import { makeGate } from './access/make-gate.ts'
import { isFromElsewhere, isOwnAction } from './access/origin.ts'
import { type Action, type ActionName, BadAction, CHANGES, type Change, change, find, READS, readAction } from './actions.ts'
import { answer, html, json } from './answer.ts'
import { BadBody } from './body.ts'
import { KeyMemory } from './key-memory.ts'
import { type CheckedOptions, checkOptions, type DashboardOptions } from './options.ts'
import { BUILD, PAGE, SCRIPT_HASH, STYLE_HASH } from './page.generated.ts'
import type { Audit } from './protocol.ts'
import { Rules } from './rules.ts'
import { Stream } from './stream.ts'
import { Undo } from './undo.ts'

/** Allows only this page's own script and style and connections to its server. Other pages can't frame it. */
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
]

/** Milliseconds. */
const SHARED = 1_000

type Next = (error?: unknown) => void
type Read = Exclude<ActionName, Change>

/** A handler of `node:http`, which is also a middleware of Express. */
export interface DashboardHandler {
  (request: IncomingMessage, response: ServerResponse, next?: Next): void
  /** Ends all streams, because a server that closes would wait for them. Later requests get 503. */
  close(): void
}

/**
 * The dashboard of a throttler and its cluster. It works under any path. If your server leaves the mount path in `request.url`, set `path`.
 *
 * @throws WeirError for invalid options, and without `authorize`
 *
 * @example
 * createServer(dashboard(throttler, { authorize: password(process.env.DASHBOARD_PASSWORD) })).listen(9090)
 */
export function dashboard(throttler: Throttler<string, never>, options: DashboardOptions): DashboardHandler {
  const made = new Dashboard(throttler, options)
  const handler = (request: IncomingMessage, response: ServerResponse, next?: Next): void => {
    made.handle(request, response, () => senderOf(request), next)
  }
  return Object.assign(handler, { close: () => made.close() })
}

/** The sender by the socket. Without a framework no proxies are known. */
function senderOf({ socket }: IncomingMessage): Sender {
  return { address: socket.remoteAddress, secure: (socket as TLSSocket).encrypted === true }
}

/** State and checks that all handlers of the dashboard share. */
export class Dashboard {
  readonly #throttler: Throttler<string, never>
  readonly #options: CheckedOptions
  readonly #gate: Gate
  readonly #stream: Stream
  readonly #keys: KeyMemory
  readonly #rules: Rules
  readonly #undo = new Undo()
  #audit: { readonly at: number; readonly answer: Promise<Audit> } | undefined
  #zipped: Buffer | undefined
  #closed = false

  /** @throws WeirError */
  constructor(throttler: Throttler<string, never>, options: DashboardOptions) {
    this.#options = checkOptions(options)
    this.#throttler = throttler
    const side = adapterOf(throttler)
    this.#gate = makeGate(this.#options.authorize, (error, subject) => side.warn(error, subject))
    this.#keys = new KeyMemory(throttler)
    this.#rules = new Rules(throttler)
    this.#stream = new Stream(throttler, BUILD, this.#keys)
  }

  close(): void {
    this.#closed = true
    this.#gate.close()
    this.#stream.close()
    this.#keys.close()
  }

  /**
   * Answers a request.
   *
   * @param sender - returns the sender, called only if needed
   * @param next - receives requests to other paths, and errors
   * @param mount - the mount path, if the framework has not cut it off and has no `baseUrl`
   */
  handle(request: IncomingMessage, response: ServerResponse, sender: () => Sender, next?: Next, mount?: string): void {
    this.#handle({ request, response, sender, mount }, next).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else if (next !== undefined) next(error)
      else answer(response, 500, 'Something went wrong.\n')
    })
  }

  async #handle(visit: Visit, next?: Next): Promise<void> {
    const { request, response } = visit
    const { originalUrl, baseUrl } = request as { originalUrl?: string; baseUrl?: string }
    const whole = pathOf(originalUrl ?? request.url)
    const { path } = this.#options
    if (path !== undefined && whole !== path && !whole.startsWith(`${path}/`)) {
      if (next === undefined) answer(response, 404, 'Not found.\n')
      else next()
      return
    }
    if (this.#closed) return answer(response, 503, 'The dashboard is closed.\n')
    const name = whole.slice(whole.lastIndexOf('/') + 1)
    // Without a framework and without `path` the mount path is unknown, and may be the whole path.
    const mount = path ?? visit.mount ?? baseUrl
    const isMount = mount === undefined ? !name.includes('.') : whole === mount
    const isInside = mount === undefined || whole === `${mount}/${name}`
    const method = request.method ?? 'GET'
    if (method === 'POST' && isInside) return this.#post(visit, name)
    if (method !== 'GET' && method !== 'HEAD') return answer(response, 405, 'Only GET.\n', { Allow: 'GET, HEAD' })
    if (isInside && name === 'events' && method === 'GET') return this.#open(visit)
    // A relative redirect works even if a proxy has cut off a part of the path. The page's own addresses need the slash.
    if (isMount && name !== '') return answer(response, 302, 'See there.\n', { Location: `./${encodeURI(decode(name))}/` })
    if (!isInside || name !== '') return answer(response, 404, 'Not found.\n')
    const grant = await this.#gate.allow(visit, 'view')
    if (grant === undefined) this.#gate.reject(visit, 'page')
    else this.#page(visit)
  }

  async #post(visit: Visit, name: string): Promise<void> {
    const { sessions } = this.#gate
    if (isAction(name)) return this.#act(visit, name)
    if (sessions !== undefined && name === '') return sessions.signIn(visit)
    if (sessions !== undefined && name === 'sign-out') {
      const session = sessions.signOut(visit)
      if (session !== undefined) this.#stream.end(session)
      return
    }
    answer(visit.response, 405, 'Only GET.\n', { Allow: 'GET, HEAD' })
  }

  #page({ request, response }: Visit): void {
    const fields = { 'Referrer-Policy': 'no-referrer', Vary: 'Accept-Encoding' }
    if (/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
      this.#zipped ??= gzipSync(PAGE)
      html(response, 200, this.#zipped, POLICY, { ...fields, 'Content-Encoding': 'gzip' })
    } else html(response, 200, PAGE, POLICY, fields)
  }

  async #open(visit: Visit): Promise<void> {
    const { request, response } = visit
    // Other sites can't read the stream, but they could use up `maxClients`.
    if (isFromElsewhere(request)) return json(response, 403, { error: 'Not allowed from another site.' })
    const grant = await this.#gate.allow(visit, 'view')
    if (grant === undefined) return this.#gate.reject(visit, 'data')
    const actions = await this.#mayAct(visit)
    // The client may have disconnected during the checks. From here on nothing is asynchronous, so that the count of clients is exact.
    if (response.destroyed || request.socket.destroyed || response.headersSent) return
    if (this.#closed || this.#stream.clients >= this.#options.maxClients) {
      return answer(response, 503, 'Too many dashboards are open.\n', { 'Retry-After': '10' })
    }
    this.#stream.add(response, { ...grant, actions, signOut: this.#gate.sessions !== undefined })
  }

  async #mayAct(visit: Visit): Promise<boolean> {
    return this.#options.actions && (await this.#gate.allow(visit, 'act')) !== undefined
  }

  async #act(visit: Visit, name: ActionName): Promise<void> {
    const { request, response } = visit
    const isChange = (CHANGES as readonly string[]).includes(name)
    if ((isChange && !this.#options.actions) || !isOwnAction(request)) return json(response, 403, { error: 'Not allowed.' })
    const grant: Grant | undefined = await this.#gate.allow(visit, isChange ? 'act' : 'view')
    if (grant === undefined) return this.#gate.reject(visit, 'data')
    try {
      const action = await readAction(request)
      if (!isChange) return json(response, 200, await this.#read(name as Read, action))
      const done = change(this.#throttler, this.#keys, this.#undo, name as Change, action)
      const { key, policy, reason } = action
      // Not awaited, because the action has taken effect even if the store is down.
      void recordAction(this.#throttler, { by: actorOf(visit, grant), action: name, key, policy, reason })
      this.#stream.changed()
      json(response, 200, done)
    } catch (error) {
      if (error instanceof BadBody) json(response, error.status, { error: error.message })
      else if (error instanceof BadAction) json(response, 400, { error: error.message })
      else throw error
    }
  }

  /** All pages share an answer of the store for a second, because each page asks every two seconds. */
  #audited(): Promise<Audit> {
    const at = performance.now()
    if (this.#audit === undefined || at - this.#audit.at > SHARED) this.#audit = { at, answer: this.#readAudit() }
    return this.#audit.answer
  }

  async #readAudit(): Promise<Audit> {
    try {
      return { entries: await auditLog(this.#throttler) }
    } catch {
      throw new BadAction('The store did not answer with the audit log. Try again once it is back.')
    }
  }

  async #read(name: Read, action: Action): Promise<object> {
    switch (name) {
      case 'rules':
        return this.#rules.find(action.key, action.from)
      case 'audit':
        return this.#audited()
      case 'series':
        return this.#stream.series(action)
      case 'find':
        return find(this.#throttler, this.#keys, action.key, this.#stream.view)
    }
  }
}

function isAction(name: string): name is ActionName {
  return [...READS, ...CHANGES].some((action) => action === name)
}

/** The person behind a request, as far as known. */
function actorOf({ sender }: Visit, { name, session }: Grant): string {
  const address = sender().address ?? 'unknown address'
  if (name !== undefined) return name
  return session === undefined ? address : `session ${session.slice(0, 6)}, ${address}`
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
