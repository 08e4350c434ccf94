import { randomBytes } from 'node:crypto'
import { systemClock, WeirError } from '@weir/core'
import { type NodeStatus, parseStatus, toldPolicies } from '@weir/core/inspect'
import type { HeartbeatReply, Store, StoreConnection, StorePolicy } from '@weir/core/sync'

/** A key that is blocked at all nodes. */
export interface BlockedKey {
  readonly policy: string
  readonly key: string
  /** Milliseconds. */
  readonly remaining: number
  readonly manual: boolean
}

/** A key, and what it has used of what it may, as far as the nodes tell. */
export interface HotKey {
  readonly policy: string
  readonly key: string
  readonly used: number
  /** Units that it may use; undefined where no node tells. */
  readonly limit: number | undefined
}

/** A node as it tells of itself. */
export interface WatchedNode extends NodeStatus {
  /** Milliseconds since it did. */
  readonly age: number
}

/** A cluster, as its store shows it. */
export interface ClusterView {
  /** Live nodes, also those that have not told of themselves yet. */
  readonly live: number
  readonly nodes: readonly WatchedNode[]
  /** Nearest to their limits first. */
  readonly hot: readonly HotKey[]
  /** With the most time left first. */
  readonly blocked: readonly BlockedKey[]
}

/** Milliseconds for which who only looks counts as live. */
const GONE_AT_ONCE = 1
/** A process that reports rules receives the rules of others. This one has none. */
const NO_RULES = '[]'
const MOST_POLICIES = 1_000

/** Looks at a cluster through its store: nodes tell of themselves while somebody does. Takes part in nothing. */
export class StoreWatch {
  readonly #connection: StoreConnection
  readonly #blocks = new Map<string, { readonly policy: string; readonly key: string; readonly until: number; readonly manual: boolean }>()
  readonly #policies = new Map<string, StorePolicy>()
  readonly #names = new Map<string, string>()
  #cursor: string | undefined

  constructor(store: Store) {
    const id = `watch-${randomBytes(8).toString('hex')}`
    this.#connection = store.open({ id, clock: systemClock, announced: () => {} })
  }

  /** @throws (rejects) WeirError when the store does not answer */
  async look(): Promise<ClusterView> {
    let heartbeat = await this.#beat()
    // Blocks are told of policies that one knows: those of the rules that nodes tell. Of new ones all are wanted.
    if (this.#learn(heartbeat)) {
      this.#cursor = undefined
      heartbeat = await this.#beat()
    }
    const now = performance.now()
    this.#cursor = heartbeat.cursor
    for (const { policyId, key, remaining, manual } of heartbeat.blocks) {
      const id = JSON.stringify([policyId, key])
      const policy = this.#names.get(policyId) ?? policyId
      if (remaining > 0) this.#blocks.set(id, { policy, key, until: now + remaining, manual: manual === true })
      else this.#blocks.delete(id)
    }
    for (const [id, { until }] of this.#blocks) if (until <= now) this.#blocks.delete(id)
    const nodes = (heartbeat.statuses ?? []).flatMap(({ status, age }) => {
      const told = parseStatus(status)
      return told === undefined ? [] : [{ ...told, age }]
    })
    return {
      // This one is counted too.
      live: Math.max(nodes.length, heartbeat.nodes - 1),
      nodes: nodes.sort((one, other) => (one.label < other.label ? -1 : 1)),
      hot: hottest(nodes),
      blocked: [...this.#blocks.values()]
        .map(({ until, ...rest }) => ({ ...rest, remaining: Math.round(until - now) }))
        .sort((one, other) => other.remaining - one.remaining),
    }
  }

  /** Whether a node counts by the rule with this id, as far as has been told. */
  knows(policyId: string): boolean {
    return this.#names.has(policyId)
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  async #beat(): Promise<HeartbeatReply> {
    const { heartbeat } = await this.#connection.sync({
      entries: [],
      blocks: [],
      heartbeat: { ttl: GONE_AT_ONCE, cursor: this.#cursor, policies: [...this.#policies.values()], watch: true, rules: NO_RULES },
    })
    if (heartbeat === undefined)
      throw new WeirError('WEIR_STORE_REPLY', 'The store did not answer a heartbeat. Check its address and the network.')
    return heartbeat
  }

  /** Whether there are policies that were not known. */
  #learn({ rules = [] }: HeartbeatReply): boolean {
    let isNew = false
    for (const { id, name } of rules.flatMap((told) => toldPolicies(told.rules)).slice(0, MOST_POLICIES)) {
      isNew ||= !this.#policies.has(id)
      // The order is that of the last report.
      this.#policies.delete(id)
      this.#policies.set(id, { id, width: 1_000, cells: 1, limit: 1, hot: Number.POSITIVE_INFINITY, ttl: 1_000 })
      this.#names.set(id, name)
      if (this.#policies.size <= MOST_POLICIES) continue
      const [oldest] = this.#policies.keys()
      this.#policies.delete(oldest as string)
      this.#names.delete(oldest as string)
    }
    return isNew
  }
}

/** Each key once: what the node knows that has heard of most, or what all have counted that told of it, whichever is more. */
function hottest(nodes: readonly NodeStatus[]): readonly HotKey[] {
  const keys = new Map<string, { readonly policy: string; readonly key: string; known: number; own: number; limit: number | undefined }>()
  for (const { top, policies } of nodes) {
    for (const { policy, key, used, own } of top) {
      const id = JSON.stringify([policy, key])
      let one = keys.get(id)
      if (one === undefined) keys.set(id, (one = { policy, key, known: 0, own: 0, limit: undefined }))
      one.known = Math.max(one.known, used)
      one.own += own
      one.limit ??= policies.find(({ name }) => name === policy)?.capacity
    }
  }
  const part = ({ used, limit }: HotKey): number => used / (limit ?? Number.POSITIVE_INFINITY)
  return [...keys.values()]
    .map(({ policy, key, known, own, limit }) => ({ policy, key, used: Math.max(known, own), limit }))
    .sort((one, other) => part(other) - part(one))
}
