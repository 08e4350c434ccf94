import { WeirError } from '@weir/core'
import {
  type AuditLog,
  afterSilence,
  boundedLog,
  closedPart,
  type Decider,
  type StoreConnection,
  type StoreNode,
  type SyncReply,
  type SyncRequest,
} from '@weir/core/sync'
import { Calls, lacks, QUEUE_FULL } from '../connection/calls.ts'
import { Listener } from '../connection/listener.ts'
import type { CheckedOptions } from '../connection/options.ts'
import { Session, timedOut } from '../connection/session.ts'
import { codeOf } from '../connection/sql-state.ts'
import type { Template } from '../connection/template.ts'
import { replyError } from '../reply/check.ts'
import { announcementsOf } from './announcements.ts'
import { Exchange, type ExchangeContext } from './exchange.ts'
import { Losses } from './losses.ts'
import { PolicyNames } from './policies.ts'

/** Part of the timeout within which a server must answer while it is down. */
const PROBE_PATIENCE = 0.5
/** The connections of one process to PostgreSQL. */
export class PostgresConnection implements StoreConnection {
  readonly #node: StoreNode
  readonly #options: CheckedOptions
  readonly #session: Session
  readonly #listener: Listener | undefined
  readonly #context: ExchangeContext
  readonly #names = new PolicyNames()
  readonly #calls: Calls
  #closed = false
  /** The last sync got no reply. */
  #failing = false

  constructor(node: StoreNode, template: Template, options: CheckedOptions) {
    const { clock, id } = node
    const { schema, timeout, publish } = options
    this.#node = node
    this.#options = options
    this.#session = new Session({ template, clock, patience: timeout })
    this.#calls = new Calls(this.#session, options, () => clock.monotonic())
    // The version of the layout, because messages of a later one may differ.
    const channel = `${schema}:1`
    if (publish) {
      this.#listener = new Listener({
        template,
        clock,
        patience: timeout,
        channel,
        notify: (name) => this.#session.query(`SELECT pg_notify($1, '')`, [name]),
        heard: (payload) => this.#heard(payload),
        deaf: (reason) => this.#deaf(reason),
      })
    }
    this.#context = {
      node: id,
      names: this.#names,
      losses: new Losses(),
      channel: publish ? channel : undefined,
      last: undefined,
      monotonic: () => clock.monotonic(),
      call: (values) => this.#exchange(values),
    }
  }

  sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) return Promise.reject(closedPart('The connection to the store'))
    const { clock } = this.#node
    return new Promise((resolve, reject) => {
      const begun = clock.monotonic()
      let settled = false
      let cancel = (): void => {}
      const waitForAnswer = (): void => {
        if (settled) return
        cancel()
        // While the store is down each sync is a probe. A lost probe must not delay the next one for long.
        const timeout = this.#failing ? this.#options.timeout * PROBE_PATIENCE : this.#options.timeout
        cancel = afterSilence(clock, timeout, () => settle(timedOut(timeout)))
      }
      const exchange = new Exchange(request, this.#context, waitForAnswer)
      const settle = (error?: unknown): void => {
        if (settled) return
        settled = true
        cancel()
        this.#session.release()
        this.#failing = !exchange.answered
        if (exchange.answered) resolve(exchange.reply((begun + clock.monotonic()) / 2))
        else reject(this.#failed(error))
      }
      waitForAnswer()
      this.#session.hold()
      this.#run(exchange).then(settle, settle)
    })
  }

  async decider(): Promise<Decider> {
    const { PostgresDecider } = await import('../central/decider.ts')
    const context = this.#context
    return new PostgresDecider({
      node: context.node,
      connection: this.#session,
      storeTime: () => context.last && context.last.time + (context.monotonic() - context.last.middle),
      heard: (time, since) => {
        context.last = { time, middle: (since + context.monotonic()) / 2 }
      },
      monotonic: context.monotonic,
      call: async (values) => textOf(await this.#calls.call('decide_1', values)),
    })
  }

  async audit(): Promise<AuditLog> {
    const { auditAt } = await import('./audit.ts')
    return boundedLog(auditAt(this.#session, this.#calls, this.#options.schema), this.#node.clock, (error) => this.#failed(error))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#listener?.close()
    const { clock, id } = this.#node
    // Removes this process from the live ones, so that others don't wait for its entry to expire. If that fails, it expires.
    if (this.#session.ready) {
      this.#session.hold()
      await new Promise<void>((resolve) => {
        const timer = clock.setTimeout(resolve, this.#options.timeout)
        const done = (): void => {
          clock.clearTimeout(timer)
          resolve()
        }
        this.#session.query(`DELETE FROM ${this.#options.schema}.nodes WHERE node = $1`, [id]).then(done, done)
      })
      this.#session.release()
    }
    this.#session.close()
  }

  /** Warns about errors that last until a setting changes, such as a wrong password, because an application may not listen to events. */
  #failed(error: unknown): WeirError {
    const told = asWeirError(error, this.#options)
    if (error !== told && nextStep(codeOf(error), told.message, this.#options) !== undefined) this.#node.warned?.(told)
    return told
  }

  async #run(exchange: Exchange): Promise<void> {
    if (!(await this.#session.connected())) throw this.#session.lastError ?? new Error('not connected')
    await exchange.run()
  }

  async #exchange(values: unknown[]): Promise<string> {
    try {
      return textOf(await this.#calls.call('exchange_1', values))
    } catch (error) {
      if (codeOf(error) !== QUEUE_FULL || this.#context.channel === undefined) throw error
      return textOf(await this.#calls.call('exchange_1', withoutChannel(values)))
    }
  }

  #heard(payload: string): void {
    if (this.#closed) return
    let announcements: ReturnType<typeof announcementsOf>
    try {
      announcements = announcementsOf(payload, this.#node.id, this.#names)
    } catch {
      // The message is from another program or an unknown version. Announcements may be lost, so it is ignored.
      return
    }
    for (const announcement of announcements) this.#node.announced(announcement)
  }

  #deaf(reason: string): void {
    if (this.#closed) return
    this.#node.warned?.(
      new WeirError(
        'WEIR_STORE_UNAVAILABLE',
        `Can't LISTEN on PostgreSQL (${reason}), so limits are less accurate. pgbouncer in transaction mode blocks LISTEN: use session mode or a direct connection.`,
      ),
    )
  }
}

function withoutChannel([request, ...columns]: unknown[]): unknown[] {
  const { channel: _, ...rest } = JSON.parse(request as string) as Record<string, unknown>
  return [JSON.stringify(rest), ...columns]
}

function textOf(reply: unknown): string {
  if (typeof reply !== 'string') throw replyError('no reply')
  return reply
}

function asWeirError(error: unknown, options: CheckedOptions): WeirError {
  if (error instanceof WeirError) return error
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
  const step = nextStep(codeOf(error), message, options)
  const what = codeOf(error).length === SQLSTATE ? 'rejected a statement' : 'is unreachable'
  return new WeirError('WEIR_STORE_UNAVAILABLE', `PostgreSQL ${what} (${message}). ${step ?? OTHERWISE}`, { cause: error })
}

/** The length of PostgreSQL's error codes. Codes of connection errors are longer. */
const SQLSTATE = 5
const OTHERWISE = 'Weir tries again. Check the server, its address and the network.'

/** The next step for an error of PostgreSQL, or of pg, that only another setting fixes. */
function nextStep(code: string, message: string, { schema, create }: CheckedOptions): string | undefined {
  if (lacks(code))
    return `Run the statements of schemaSql() as a role that may create the schema ${schema}, and grant this role access to it${create ? '' : ', because the option "create" is false'}.`
  // pg itself throws without a code if there is no password.
  if (code === '28P01' || /password must be a string/.test(message))
    return 'Check the user and the password in the URL, or the options "user" and "password" of pg.'
  if (code === '28000') return 'Allow this user and this host in pg_hba.conf, or check the "user" and "ssl" of pg.'
  if (code === '3D000') return 'Create the database, or check its name in the URL.'
  if (/does not support SSL/.test(message)) return 'This server does not use TLS: leave out "ssl", or sslmode in the URL.'
  if (/certificate/.test(message)) return 'Use the host name of its certificate. If the authority is your own, pass it to pg: ssl: { ca }.'
  if (code === 'ENOTFOUND') return 'No host has this name. Check the URL.'
  return undefined
}
