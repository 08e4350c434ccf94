import { STEP_IDS } from '../algorithms/all.ts'
import { connectToHub } from '../hub/memory-store.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { closedPart, WeirError, type WeirErrorCode, warnProcess } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'
import type { AuditLog, Decide, Decider, StoreConnection, StoreNode, SyncReply, SyncRequest, Verdict } from '../store/contract.ts'
import { backgroundStore } from '../sync/coordinator.ts'
import { checkSockets } from '../sync/no-sockets.ts'
import type { Store } from '../throttler/coordinator.ts'
import { afterSilence } from '../time/after-silence.ts'
import { type ChannelUser, parentChannel } from './channel.ts'
import { type IpcMessage, pack, packDecide } from './envelope.ts'
import { startedByPm2 } from './pm2.ts'
import { servedHub } from './serve.ts'

/** Options of `ipcStore`. */
export interface IpcStoreOptions {
  /**
   * Limits how long a sync waits for the parent before it counts as failed: 10 ms to 60 s.
   *
   * Requests wait for the parent only with coordination `'central'` and `'leased'`, at most for `storeTimeout`. The default is longer than
   * the event loop of a healthy parent is ever blocked.
   *
   * @default 1000
   */
  readonly timeout?: Duration
}

/**
 * A store for the processes of one machine, without a server. Workers of `node:cluster` and children of `child_process.fork` share their
 * counts through their parent, which calls `serveIpc()` and may use `ipcStore()` too.
 *
 * Each side checks the other's messages. A child is trusted like any other process: it can send wrong counts and block keys. But through
 * Weir it can't end its parent or siblings, or make them use more than a bounded amount of memory.
 *
 * If the parent doesn't answer, policies use their `failMode`, and the process emits one warning. PM2 can't be the parent.
 *
 * @throws {WeirError} `WEIR_INVALID_OPTION`, also in a process that PM2 started. `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * if (cluster.isPrimary) {
 *   serveIpc()
 *   for (let i = 0; i < availableParallelism(); i++) cluster.fork()
 * } else {
 *   app.use(throttle({ key: 'ip', limit: 300, interval: '1m', store: ipcStore() }))
 * }
 */
export function ipcStore(options: IpcStoreOptions = {}): Store {
  checkSockets('ipcStore')
  checkOptions('ipcStore', options, ['timeout'], 'options such as { timeout: "1s" }')
  const timeout = parseDuration(options.timeout ?? 1000, 'timeout', 10, 60_000)
  if (servedHub() === undefined && startedByPm2()) {
    const next = 'Use redisStore(url) from "@weir/redis". If this process has children of its own, call serveIpc() before ipcStore().'
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `ipcStore() can't share counts between processes of PM2, because PM2 doesn't serve it. ${next}`,
    )
  }
  return backgroundStore({
    kind: 'ipc',
    reserves: true,
    decides: (step) => (STEP_IDS as readonly string[]).includes(step),
    open: (node) => new IpcConnection(node, timeout),
  })
}

interface Question {
  /** Cancels its timeout. */
  readonly cancel: () => void
  /** Whether it keeps the process alive. */
  readonly held: boolean
  resolve(reply: never): void
  reject(error: WeirError): void
}

class IpcConnection implements StoreConnection, ChannelUser {
  readonly node: string
  readonly #node: StoreNode
  readonly #timeout: number
  readonly #questions = new Map<number, Question>()
  /** The connection to a hub that this process serves. It sends no messages. */
  #direct: StoreConnection | undefined
  #asked = 0
  /**
   * Whether the last finished question got no answer. Until one gets an answer, questions don't keep the process alive. Otherwise it would
   * never end, because the next question begins before the last one ends.
   */
  #failing = false
  #closed = false

  constructor(node: StoreNode, timeout: number) {
    this.node = node.id
    this.#node = node
    this.#timeout = timeout
    this.#connectDirectly()
    if (this.#direct !== undefined || !parentChannel.open) return
    parentChannel.join(this)
    // This throttler receives announcements from now on, not only from its first sync on.
    parentChannel.send({ kind: 'join', node: this.node }, () => {})
  }

  sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) return Promise.reject(closedPart('The connection to the store'))
    // `serveIpc` may have been called after this connection was opened.
    this.#connectDirectly()
    if (this.#direct !== undefined) return this.#direct.sync(request)
    if (!parentChannel.open) return Promise.reject(this.#alone('This process has no channel to a parent process'))
    return new Promise((resolve, reject) => {
      this.#ask((id) => ({ kind: 'request', node: this.node, id, request: pack(request) }), { resolve, reject })
    })
  }

  async decider(): Promise<Decider> {
    let direct: Decider | undefined
    return {
      partOf: () => 0,
      decide: async (request) => {
        // `serveIpc` may have been called after this connection was opened.
        this.#connectDirectly()
        direct ??= await this.#direct?.decider?.()
        return await (direct ?? { decide: (one: Decide) => this.#decide(one) }).decide(request)
      },
    }
  }

  #decide(request: Decide): Promise<readonly Verdict[]> {
    if (this.#closed || !parentChannel.open) return Promise.reject(this.#alone('This process has no channel to a parent process'))
    return new Promise((resolve, reject) => {
      this.#ask((id) => ({ kind: 'ask', node: this.node, id, ask: packDecide(request) }), { resolve, reject })
    })
  }

  async audit(): Promise<AuditLog> {
    this.#connectDirectly()
    const direct = await this.#direct?.audit?.()
    const ask = (question: { readonly entry?: string; readonly most: number }): Promise<readonly string[]> => {
      if (this.#closed || !parentChannel.open) return Promise.reject(this.#alone('This process has no channel to a parent process'))
      return new Promise((resolve, reject) => {
        this.#ask((id) => ({ kind: 'audit', node: this.node, id, ...question }), { resolve, reject })
      })
    }
    return direct ?? { add: async (entry) => void (await ask({ entry, most: 0 })), list: (most) => ask({ most }) }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#direct?.close()
    for (const id of [...this.#questions.keys()])
      this.#settle(id)?.reject(
        new WeirError('WEIR_CLOSED', 'The store was closed before it answered. Make another throttler to use it again.'),
      )
    if (parentChannel.open && this.#direct === undefined) parentChannel.send({ kind: 'leave', node: this.node }, () => {})
    parentChannel.leave(this)
  }

  replied(id: number, reply: unknown): void {
    const question = this.#settle(id)
    this.#failing = false
    if (reply instanceof Error) {
      question?.reject(
        new WeirError(
          'WEIR_STORE_REPLY',
          `The parent process could not answer: ${reply.message}. Use the same version of @weir/core in all processes.`,
          { cause: reply },
        ),
      )
    } else {
      question?.resolve(reply as never)
    }
  }

  announced(announcement: Parameters<StoreNode['announced']>[0]): void {
    this.#node.announced(announcement)
  }

  disconnected(): void {
    for (const id of [...this.#questions.keys()]) this.#settle(id)?.reject(this.#alone('The parent process has ended'))
    parentChannel.leave(this)
  }

  #connectDirectly(): void {
    const hub = servedHub()
    if (hub === undefined || this.#direct !== undefined) return
    parentChannel.leave(this)
    this.#direct = connectToHub(hub, this.#node)
  }

  #ask(message: (id: number) => IpcMessage, { resolve, reject }: Pick<Question, 'resolve' | 'reject'>): void {
    const id = ++this.#asked
    const cancel = afterSilence(this.#node.clock, this.#timeout, () => {
      this.#failing = true
      this.#settle(id)?.reject(this.#alone(`The parent process did not answer within ${this.#timeout} ms`, 'WEIR_STORE_TIMEOUT'))
    })
    const held = !this.#failing
    this.#questions.set(id, { cancel, held, resolve, reject })
    if (held) parentChannel.hold()
    parentChannel.send(message(id), () => {
      this.#settle(id)?.reject(this.#alone('The channel to the parent process is closed'))
    })
  }

  #settle(id: number): Question | undefined {
    const question = this.#questions.get(id)
    if (question === undefined) return undefined
    this.#questions.delete(id)
    question.cancel()
    if (question.held) parentChannel.release()
    return question
  }

  #alone(why: string, code: 'WEIR_STORE_UNAVAILABLE' | 'WEIR_STORE_TIMEOUT' = 'WEIR_STORE_UNAVAILABLE'): WeirError {
    const next = 'Policies use their "failMode" until it answers. Call serveIpc() in the parent'
    warnOnce(`${why}. ${next}.`, code)
    return new WeirError(code, `${why}. Call serveIpc() in the parent.`)
  }
}

let warned = false

/** Warns once per process, because every throttler and every attempt would repeat the same message. */
function warnOnce(message: string, code: WeirErrorCode): void {
  if (warned) return
  warned = true
  warnProcess(code, message)
}
