import type { ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Hub } from '../hub/hub.ts'
import { systemClock } from '../time/clock.ts'
import { type IpcMessage, seal, unpack, unseal } from './envelope.ts'

/** Node publishes each new child process here, those of node:cluster included. */
const CHILDREN = 'child_process'
/** Announcements that a child has not taken yet; more are dropped, as losing them is allowed and memory is not endless. */
const MOST_PENDING = 1000

// In the process, not in the module: two copies of this package in one process serve one hub.
const SERVED = Symbol.for('@weir/core/ipc/1')
const registry = globalThis as { [SERVED]?: { readonly hub: Hub; services: number } }

/** The hub that this process serves to its children, if it does. */
export function servedHub(): Hub | undefined {
  return registry[SERVED]?.hub
}

/** What `serveIpc` returns. */
export interface IpcService {
  /** Serves a child process that was forked before `serveIpc` was called. Doing so twice is harmless. */
  attach(child: ChildProcess): void
  /** Stops serving; the children throttle alone from then on. */
  close(): void
}

/**
 * Makes this process the meeting point of its children, which use `ipcStore()`: workers of `node:cluster`, and children
 * of `child_process.fork` that are started later (hand earlier ones to `attach`). Nothing keeps the process alive, and
 * messages of your own pass by. `ipcStore` shows an example.
 */
export function serveIpc(): IpcService {
  const served = (registry[SERVED] ??= { hub: new Hub(systemClock), services: 0 })
  served.services++
  const children = new Map<ChildProcess, () => void>()

  const attach = (child: ChildProcess): void => {
    if (children.has(child)) return
    const detach = serveChild(served.hub, child, () => children.delete(child))
    children.set(child, detach)
  }
  const born = (message: unknown): void => attach((message as { process: ChildProcess }).process)

  subscribe(CHILDREN, born)
  for (const worker of Object.values(cluster.workers ?? {})) if (worker !== undefined) attach(worker.process)

  let closed = false
  return {
    attach,
    close() {
      if (closed) return
      closed = true
      unsubscribe(CHILDREN, born)
      for (const detach of [...children.values()]) detach()
      if (--served.services === 0) delete registry[SERVED]
    },
  }
}

/** Answers one child, and forgets its nodes when it is gone. Returns what ends that. */
function serveChild(hub: Hub, child: ChildProcess, gone: () => void): () => void {
  const nodes = new Set<string>()
  let unlisten: (() => void) | undefined
  let pending = 0

  const send = (message: IpcMessage): void => {
    if (!child.connected) return
    pending++
    // With a callback, a channel that closes at this moment is no error of the process.
    child.send(seal(message), undefined, {}, () => {
      pending--
    })
  }
  const announce = (): (() => void) =>
    hub.listen((announcement) => {
      if (pending < MOST_PENDING) send({ kind: 'announcement', announcement })
    })
  const received = (value: unknown): void => {
    const message = unseal(value)
    if (message?.kind === 'join' || message?.kind === 'request') {
      nodes.add(message.node)
      unlisten ??= announce()
    }
    if (message?.kind === 'request') {
      const { node, id } = message
      try {
        send({ kind: 'reply', node, id, reply: hub.exchange(node, unpack(message.request)) })
      } catch (error) {
        send({ kind: 'failure', node, id, message: String(error) })
      }
    } else if (message?.kind === 'leave') {
      nodes.delete(message.node)
      hub.leave(message.node)
    }
  }
  const detach = (): void => {
    child.off('message', received)
    child.off('disconnect', detach)
    child.off('exit', detach)
    unlisten?.()
    for (const node of nodes) hub.leave(node)
    gone()
  }
  child.on('message', received)
  child.on('disconnect', detach)
  child.on('exit', detach)
  return detach
}
