import { type Clock, WeirError } from '@weir/core'
import { afterSilence, closedPart } from '@weir/core/sync'
import { Endpoint, EtcdError, Unreachable } from './endpoint.ts'
import type { Compare, Operation } from './operations.ts'
import type { CheckedTarget } from './options.ts'
import { readToken, readTransaction, replyError, type TransactionReply } from './replies.ts'
import { ServerTime } from './server-time.ts'

/** Part of the timeout within which a server must answer while it is down. */
const PROBE_PATIENCE = 0.5
/** gRPC: no leader, or too slow. */
const UNAVAILABLE = 14
const UNAUTHENTICATED = 16

/** No reply within the timeout. */
class TimedOut extends WeirError {}

/**
 * The connection of one process to etcd: it uses one member of the cluster, and the next one if that is down. It has no queue. If a
 * connection fails, the request goes to the next member, so etcd may run it twice.
 */
export class Link {
  readonly time: ServerTime
  readonly clock: Clock
  readonly timeout: number
  readonly #target: CheckedTarget
  readonly #endpoints: readonly Endpoint[]
  #place = 0
  #token: string | undefined
  #login: Promise<string> | undefined
  /** The last request got no reply. */
  #failing = false
  #closed = false
  /** The newest revision that etcd has returned. Later requests return the same or a newer one, unless etcd has lost data. */
  newest = 0

  constructor(target: CheckedTarget, clock: Clock, timeout: number) {
    this.#target = target
    this.#endpoints = target.endpoints.map((url) => new Endpoint(url, target.tls))
    this.clock = clock
    this.timeout = timeout
    this.time = new ServerTime(clock)
  }

  /**
   * Runs one transaction: the first operations if all comparisons are true, else the second.
   *
   * Nested transactions are not used, because etcd 3.4 checks neither its quota nor a user's permissions for their writes.
   *
   * @throws EtcdError, or WeirError. The outcome is unknown then
   */
  async transact(
    success: readonly Operation[],
    compare: readonly Compare[] = [],
    failure: readonly Operation[] = [],
  ): Promise<TransactionReply> {
    const reply = readTransaction(await this.call('/v3/kv/txn', { compare, success, failure }))
    if (reply.parts.length !== (reply.succeeded ? success : failure).length) throw replyError('too few or too many parts of a transaction')
    this.newest = Math.max(this.newest, reply.revision)
    return reply
  }

  /** @throws EtcdError if etcd rejects, WeirError or Unreachable if it is down or its reply is invalid */
  async call(path: string, body: object): Promise<unknown> {
    const text = JSON.stringify(body)
    let wasIdle = false
    for (let tried = 1; ; ) {
      if (this.#closed) throw closedPart('The connection to the store')
      const place = this.#place
      try {
        const answer = await this.#authorized((token) => this.#ask(path, text, token))
        this.#failing = false
        return answer
      } catch (error) {
        if (error instanceof EtcdError && error.code !== UNAVAILABLE) throw error
        // The member may have run the failed request already, so every request must be safe to run twice.
        if (error instanceof Unreachable && error.wasIdle && !wasIdle) {
          // Connections may have died while the process was frozen.
          wasIdle = true
          this.#endpoint.dropIdle()
          continue
        }
        this.#failing = true
        this.#moveOn(place)
        if (!(error instanceof Unreachable) || tried >= this.#endpoints.length) throw error
        tried++
      }
    }
  }

  /** Starts a stream of lines at the member that requests currently use. */
  stream(path: string, body: string, line: (value: unknown) => void, ended: (why: Error) => void): () => void {
    const endpoint = this.#endpoint
    let stop: (() => void) | undefined
    let over = false
    this.#authorized(async (token) => token).then(
      (token) => {
        if (!over) stop = endpoint.stream(path, body, token, line, ended)
      },
      (error: Error) => {
        if (!over) ended(error)
      },
    )
    return () => {
      over = true
      stop?.()
    }
  }

  /** Forgets the token, which is no longer valid. */
  forgetToken(): void {
    this.#token = undefined
  }

  /** Closes all connections. Later requests are not sent. */
  close(): void {
    this.#closed = true
    for (const endpoint of this.#endpoints) endpoint.close()
  }

  get #endpoint(): Endpoint {
    return this.#endpoints[this.#place] as Endpoint
  }

  /** Leaves a member that did not answer, unless another request has already done so. */
  #moveOn(place: number): void {
    if (place !== this.#place) return
    this.#endpoint.drop()
    if (this.#endpoints.length === 1) return
    this.#place = (this.#place + 1) % this.#endpoints.length
    this.time.forget()
  }

  /**
   * Runs a request with a token. Tokens expire, and every change of a user makes them invalid. So a failed request is repeated once with a
   * new token.
   */
  async #authorized<T>(run: (token: string | undefined) => Promise<T>): Promise<T> {
    if (this.#target.user === undefined) return run(undefined)
    const token = this.#token ?? (await this.#loggedIn())
    try {
      return await run(token)
    } catch (error) {
      if (!isStaleToken(error)) throw error
      if (this.#token === token) this.#token = undefined
      return run(await this.#loggedIn())
    }
  }

  #loggedIn(): Promise<string> {
    if (this.#token !== undefined) return Promise.resolve(this.#token)
    this.#login ??= this.#ask('/v3/auth/authenticate', JSON.stringify(this.#target.user), undefined)
      .then((body) => (this.#token = readToken(body)))
      .finally(() => {
        this.#login = undefined
      })
    return this.#login
  }

  async #ask(path: string, body: string, token: string | undefined): Promise<unknown> {
    const { clock } = this
    // While the store is down each request is a probe. A lost probe must not delay the next one for long.
    const timeout = this.#failing ? this.timeout * PROBE_PATIENCE : this.timeout
    const sent = clock.monotonic()
    let cancel = (): void => {}
    let late = false
    try {
      const { body: answer, date } = await this.#endpoint.post(path, body, token, (end) => {
        cancel = afterSilence(clock, timeout, () => {
          late = true
          end(new Error('no answer in time'))
        })
      })
      this.time.saw(date, sent, clock.monotonic())
      return answer
    } catch (error) {
      if (late) throw new TimedOut('WEIR_STORE_TIMEOUT', `etcd did not answer within ${timeout} ms.`)
      throw error
    } finally {
      cancel()
    }
  }
}

function isStaleToken(error: unknown): boolean {
  return (
    error instanceof EtcdError && (error.code === UNAUTHENTICATED || /invalid auth token|revision of auth store is old/.test(error.message))
  )
}

/** Converts any error of a request to one for users. */
export function asWeirError(error: unknown): WeirError {
  if (error instanceof WeirError) return error
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
  const step = STEPS.find(([pattern]) => pattern.test(message))?.[1]
  const what = error instanceof EtcdError ? 'rejected a request' : 'is unreachable'
  return new WeirError('WEIR_STORE_UNAVAILABLE', `etcd ${what} (${message}). ${step ?? OTHERWISE}`, { cause: error })
}

/** Returns whether an error lasts until a setting changes, so that it needs a warning. */
export function isSetting(error: WeirError): boolean {
  return error.code === 'WEIR_STORE_UNAVAILABLE' && STEPS.some(([, step]) => error.message.includes(step))
}

const OTHERWISE = 'Weir tries again. Check the servers, "endpoints" and the network.'

/** The next step for each error of etcd. */
const STEPS: readonly (readonly [pattern: RegExp, step: string])[] = [
  [/user name is empty/, 'This etcd needs a user. Add "username" and "password" beside "endpoints".'],
  [/authentication failed/, 'Check the options "username" and "password" of etcdStore.'],
  [/authentication is not enabled/, 'This etcd has no users. Remove "username" and "password".'],
  [
    /permission denied/,
    'Give this user of etcd the role under "Permissions" in the README of @weir/etcd, for the keys of your "namespace".',
  ],
  [/ENOTFOUND/, 'No host has this name. Check "endpoints".'],
  [/certificate|SSL routines/, 'Check "tls" and whether the endpoints begin with "https:".'],
]
