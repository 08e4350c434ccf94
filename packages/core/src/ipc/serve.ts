import type { ChildProcess } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Account } from '../hub/account.ts'
import { auditOf } from '../hub/audit.ts'
import { Hub } from '../hub/hub.ts'
import { invalidOption, warnProcess } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'
import { reasonOf } from '../report/show.ts'
import { type Announcement, LONGEST_AUDITED, type SyncReply } from '../store/contract.ts'
import { systemClock } from '../time/clock.ts'
import { Retried } from '../time/retried.ts'
import { readMessage, readRequest } from './check.ts'
import { type IpcMessage, MARK, seal } from './envelope.ts'

/** Node.js and Deno publish each new child process here, including the workers of node:cluster. Bun publishes none. */
const CHILDREN = 'child_process'
/**
 * Bounds of unsent data per child, in messages and in bytes. Beyond them announcements are dropped, because they may be lost and memory is
 * bounded, and requests are not answered.
 */
const MOST_PENDING = 1000
const MOST_PENDING_BYTES = 16 * 2 ** 20
/** Bytes of an empty message. */
const LEAST_BYTES = 200
/** The most throttlers of one child at a time. */
const MOST_NODES = 256
/** Bytes that one child, and all children together, may use in this process: about 200,000 keys per child. */
const MOST_BYTES = 128 * 2 ** 20
const MOST_BYTES_OF_ALL = 1024 * 2 ** 20

// Kept in the process, not in the module: two copies of this package in one process serve one hub.
const SERVED = Symbol.for('@weir/core/ipc/1')
const registry = globalThis as { [SERVED]?: Served }

interface Served {
  readonly hub: Hub
  /** The memory that all children use. */
  readonly account: Account
  services: number
}

/** The hub that this process serves to its children, if it does. */
export function servedHub(): Hub | undefined {
  return registry[SERVED]?.hub
}

/** Options of `serveIpc`. */
export interface ServeIpcOptions {
  /**
   * Restricts the service to these children, and to children that you pass to `attach`.
   *
   * With an empty list only children that are passed to `attach` are served.
   *
   * @default all that open an `ipcStore`
   */
  readonly children?: readonly ChildProcess[]
}

/** The result of `serveIpc`. */
export interface IpcService {
  /** Serves a child process that was forked before `serveIpc` was called. Doing so twice is harmless. */
  attach(child: ChildProcess): void
  /** Stops serving. From then on the policies of the children use their `failMode`. */
  close(): void
}

/**
 * Makes this process the store of its child processes, which use `ipcStore()`: workers of `node:cluster`, and children of
 * `child_process.fork` that start later. Pass earlier ones to `attach`. It doesn't keep the process alive and ignores your own messages.
 * `ipcStore` shows an example.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function serveIpc(options: ServeIpcOptions = {}): IpcService {
  checkOptions('serveIpc', options, ['children'], 'options such as { children: [child] }')
  const { children: only } = options
  if (only !== undefined && !Array.isArray(only)) throw invalidOption('children', only, 'a list of child processes')
  const served = (registry[SERVED] ??= { hub: new Hub(systemClock), account: new Account(MOST_BYTES_OF_ALL), services: 0 })
  served.services++
  const children = new Map<ChildProcess, () => void>()

  const attach = (child: ChildProcess): void => {
    if (children.has(child)) return
    const { end } = new ServedChild(served, child, () => children.delete(child))
    children.set(child, end)
  }
  const born = (message: unknown): void => {
    const { process: child } = message as { process: ChildProcess }
    // The child is still being created. Its channel exists only afterwards, and a child without one sends no messages.
    queueMicrotask(() => {
      if (!closed && child.channel) attach(child)
    })
  }
  const forked = (worker: Worker): void => attach(worker.process)

  let closed = false
  if (only === undefined) {
    subscribe(CHILDREN, born)
    cluster.on('fork', forked)
    for (const worker of Object.values(cluster.workers ?? {})) if (worker !== undefined) attach(worker.process)
  } else for (const child of only) attach(child)

  return {
    attach,
    close() {
      if (closed) return
      closed = true
      if (only === undefined) {
        unsubscribe(CHILDREN, born)
        cluster.off('fork', forked)
      }
      for (const detach of [...children.values()]) detach()
      if (--served.services === 0) delete registry[SERVED]
    },
  }
}

/** The decider, loaded with the first request that needs it, so that applications without such policies don't load it. */
const deciding = new Retried(
  () => import('./decide.ts'),
  systemClock,
  (cause, first) => {
    if (!first) return
    const what = `Code that decides requests of child processes could not be loaded (${reasonOf(cause)})`
    warnProcess(
      'WEIR_NOT_LOADED',
      `${what}. Weir tries again. Until it succeeds, their policies use "failMode". Check that the files of the package are readable.`,
    )
  },
)

/** One child process, until it ends or is detached. */
class ServedChild {
  readonly #served: Served
  readonly #child: ChildProcess
  readonly #gone: () => void
  readonly #account: Account
  /** The ids of this child's throttlers in the hub. They begin with its pid, so no child can send counts for another one. */
  readonly #nodes = new Set<string>()
  readonly #warned = new Set<string>()
  #unlisten: (() => void) | undefined
  #pending = 0
  #pendingBytes = 0

  constructor(served: Served, child: ChildProcess, gone: () => void) {
    this.#served = served
    this.#child = child
    this.#gone = gone
    this.#account = new Account(MOST_BYTES, served.account)
    child.on('message', this.#received)
    child.on('disconnect', this.end)
    child.on('exit', this.end)
  }

  readonly end = (): void => {
    this.#child.off('message', this.#received)
    this.#child.off('disconnect', this.end)
    this.#child.off('exit', this.end)
    this.#unlisten?.()
    for (const node of this.#nodes) this.#served.hub.leave(node)
    this.#gone()
  }

  readonly #received = (value: unknown): void => {
    const message = readMessage(value)
    if (message === undefined) {
      if (isOurs(value)) this.#warn('a message')
    } else if (message.kind === 'join' || message.kind === 'request' || message.kind === 'ask' || message.kind === 'audit') {
      const node = this.#nodeOf(message.node)
      if (node === undefined) return
      // A child costs nothing until its first throttler sends a message.
      this.#unlisten ??= this.#served.hub.listen((announcement) => this.#announce(announcement))
      if (message.kind === 'request') this.#answer(message, node)
      if (message.kind === 'ask') void this.#decide(message, node)
      if (message.kind === 'audit') void this.#audit(message)
    } else if (message.kind === 'leave') {
      const node = this.#named(message.node)
      if (this.#nodes.delete(node)) this.#served.hub.leave(node)
    }
  }

  #named(node: string): string {
    // No id contains a colon, so the ids of two children always differ.
    return `${this.#child.pid}:${node}`
  }

  #nodeOf(id: string): string | undefined {
    const node = this.#named(id)
    if (!this.#nodes.has(node) && this.#nodes.size >= MOST_NODES) return this.#warn('too many processes')
    this.#nodes.add(node)
    return node
  }

  #answer({ node: id, id: question, request: packed }: IpcMessage & { kind: 'request' }, node: string): void {
    // A child that does not read its messages gets no more answers until it does.
    if (this.#pending >= MOST_PENDING || this.#pendingBytes >= MOST_PENDING_BYTES) return
    const checked = readRequest(packed, systemClock.now())
    if (checked?.wrong !== undefined) this.#warn(checked.wrong)
    if (checked === undefined) {
      this.#warn('a request')
      this.#send({ kind: 'failure', node: id, id: question, message: 'The parent process could not read the request.' }, LEAST_BYTES)
      return
    }
    let reply: SyncReply
    try {
      reply = checked.complete(this.#served.hub.exchange(node, checked.request, this.#account))
    } catch {
      // One child's request must not end this process.
      this.#send({ kind: 'failure', node: id, id: question, message: 'The parent process failed at the request.' }, LEAST_BYTES)
      return
    }
    this.#send({ kind: 'reply', node: id, id: question, reply: withoutPids(reply) }, bytesOf(reply))
  }

  async #decide({ node: id, id: question, ask }: IpcMessage & { kind: 'ask' }, node: string): Promise<void> {
    if (this.#pending >= MOST_PENDING || this.#pendingBytes >= MOST_PENDING_BYTES) return
    const loaded = deciding.value ?? (await deciding.load())
    if (loaded === undefined) {
      // Without an answer the child would wait for its whole timeout, as for a parent that hangs.
      this.#send({ kind: 'failure', node: id, id: question, message: 'The parent process can not decide yet.' }, LEAST_BYTES)
      return
    }
    const verdicts = loaded.decideFor(this.#served.hub, node, ask, this.#account, systemClock.now())
    if (verdicts !== undefined) {
      this.#send({ kind: 'verdicts', node: id, id: question, verdicts }, LEAST_BYTES)
      return
    }
    this.#warn('a question about a request')
    this.#send({ kind: 'failure', node: id, id: question, message: 'The parent process could not read the question.' }, LEAST_BYTES)
  }

  async #audit({ node, id, entry, most }: IpcMessage & { kind: 'audit' }): Promise<void> {
    if (this.#pending >= MOST_PENDING || this.#pendingBytes >= MOST_PENDING_BYTES) return
    const log = auditOf(this.#served.hub)
    if (entry !== undefined) await log.add(entry)
    const entries = await log.list(most)
    this.#send({ kind: 'audited', node, id, entries }, LEAST_BYTES + 2 * LONGEST_AUDITED * entries.length)
  }

  #announce(announcement: Announcement): void {
    if (this.#pending < MOST_PENDING && this.#pendingBytes < MOST_PENDING_BYTES) {
      this.#send({ kind: 'announcement', announcement }, LEAST_BYTES + 2 * announcement.key.length)
    }
  }

  #send(message: IpcMessage, bytes: number): void {
    if (!this.#child.connected) return
    this.#pending++
    this.#pendingBytes += bytes
    try {
      // With a callback, a channel that closes at this moment causes no error of the process.
      this.#child.send(seal(message), undefined, {}, () => {
        this.#pending--
        this.#pendingBytes -= bytes
      })
    } catch {
      this.#pending--
      this.#pendingBytes -= bytes
    }
  }

  /** Warns once per child and kind, however often it happens. */
  #warn(what: string): undefined {
    if (this.#warned.has(what)) return
    this.#warned.add(what)
    warnProcess(
      'WEIR_WARN_IPC_MESSAGE',
      `Ignored an invalid message from child process ${this.#child.pid}: ${what}. Use the same version of @weir/core in all processes.`,
    )
  }
}

/** Whether a message that could not be read has our mark. */
function isOurs(value: unknown): boolean {
  try {
    return typeof value === 'object' && value !== null && Object.hasOwn(value, MARK)
  } catch {
    return false
  }
}

/** Approximate size of a reply while it waits to be sent. */
function bytesOf({ results, blocks, heartbeat }: SyncReply): number {
  let bytes = LEAST_BYTES + 16 * blocks.length
  for (const result of results) bytes += 64 + 64 * (result?.cells.length ?? 0)
  for (const { key } of heartbeat?.blocks ?? []) bytes += LEAST_BYTES + 2 * key.length
  for (const { key, cells } of heartbeat?.hot ?? []) bytes += LEAST_BYTES + 2 * key.length + 64 * cells.length
  for (const { status } of heartbeat?.statuses ?? []) bytes += LEAST_BYTES + 2 * status.length
  for (const { rules } of heartbeat?.rules ?? []) bytes += LEAST_BYTES + 2 * rules.length
  return bytes
}

/** Removes the pids, because processes know each other by their own ids. */
function withoutPids(reply: SyncReply): SyncReply {
  const { heartbeat } = reply
  if (heartbeat?.statuses === undefined && heartbeat?.rules === undefined) return reply
  const { statuses, rules } = heartbeat
  return {
    ...reply,
    heartbeat: { ...heartbeat, ...(statuses && { statuses: statuses.map(withoutPid) }), ...(rules && { rules: rules.map(withoutPid) }) },
  }
}

function withoutPid<Report extends { readonly node: string }>(report: Report): Report {
  return { ...report, node: report.node.slice(report.node.indexOf(':') + 1) }
}
