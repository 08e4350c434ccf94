import { hostname } from 'node:os'
import { threadId } from 'node:worker_threads'
import type { HeartbeatReply, HeartbeatRequest } from '../store/contract.ts'
import { type ClusterNode, formatStatus, type NodeStatus, parseStatus, statusOf } from './node-status.ts'
import type { Snapshot } from './snapshot.ts'

/** For so long after it was last asked for, a view of the cluster is kept up to date, in milliseconds. */
const WATCH_FOR = 10_000

/** This process, for people: host name and process id. */
export const LABEL: string = threadId === 0 ? `${hostname()}:${process.pid}` : `${hostname()}:${process.pid}/${threadId}`

/**
 * A view of all nodes, through heartbeats: who looks at it asks for the others' statuses, and only while somebody in the
 * cluster does, nodes tell theirs. Unwatched it costs nothing.
 */
export class Watch {
  readonly #startedAt: number
  #until = Number.NEGATIVE_INFINITY
  #watched = false
  #others: readonly { readonly status: NodeStatus; readonly age: number }[] = []
  #heardAt = 0

  /** @param now - on the monotonic clock, as all times here */
  constructor(now: number) {
    this.#startedAt = now
  }

  /** What a heartbeat is to carry. */
  request(snapshot: () => Snapshot, now: number): Pick<HeartbeatRequest, 'status' | 'watch'> {
    return {
      ...(this.#watched && { status: formatStatus(statusOf(snapshot(), LABEL, now - this.#startedAt)) }),
      ...(now < this.#until && { watch: true as const }),
    }
  }

  heard({ watched, statuses }: HeartbeatReply, now: number): void {
    this.#watched = watched === true
    if (statuses === undefined) return
    this.#heardAt = now
    this.#others = statuses.flatMap(({ status: text, age }) => {
      const status = parseStatus(text)
      return status === undefined ? [] : [{ status, age }]
    })
  }

  /** This node, and what is known of the others; asks for more of them. */
  nodes(snapshot: Snapshot, now: number): readonly ClusterNode[] {
    const stale = now >= this.#until
    this.#until = now + WATCH_FOR
    const self = { ...statusOf(snapshot, LABEL, now - this.#startedAt), age: 0, self: true }
    if (stale) this.#others = []
    const since = now - this.#heardAt
    return [
      self,
      ...this.#others.flatMap(({ status, age }) => (status.node === self.node ? [] : [{ ...status, age: age + since, self: false }])),
    ]
  }
}
