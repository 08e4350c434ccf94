import { randomBytes } from 'node:crypto'
import { systemClock, WeirError } from '@weir/core'
import {
  type AuditEntry,
  type LimitedKey,
  type NodeStatus,
  type PolicyStatus,
  parseAuditEntry,
  parseStatus,
  toldPolicies,
} from '@weir/core/inspect'
import type { HeartbeatReply, Store, StoreConnection, StorePolicy } from '@weir/core/sync'

/** A key that is blocked at all processes. */
export interface BlockedKey {
  readonly policy: string
  readonly key: string
  /** Milliseconds until the block ends. */
  readonly remaining: number
  readonly manual: boolean
}

/** A key with its used units, as far as processes report them. */
export interface HotKey {
  readonly policy: string
  readonly key: string
  readonly used: number
  /** Units that the key may use. Undefined if no process reports it. */
  readonly limit: number | undefined
}

/** A key whose requests processes reject. The rejections are sums, the reason is that of the last one. */
export interface RejectedKey extends LimitedKey {
  /** Processes that reported it. */
  readonly processes: number
}

/** The status that a process reported. */
export interface WatchedNode extends NodeStatus {
  /** Milliseconds since the report. */
  readonly age: number
}

/** A cluster, as its store shows it. */
export interface ClusterView {
  /** Live processes, including processes that have not reported a status yet. */
  readonly live: number
  readonly nodes: readonly WatchedNode[]
  /** Keys whose requests are rejected, most rejections in the last minute first. */
  readonly limited: readonly RejectedKey[]
  /** How far a key was above its limit in the last hour, at most, and how far one may be now, as parts of the limit. */
  readonly overshoot: { readonly measured: number; readonly possible: number }
  /** Nearest to their limits first. */
  readonly hot: readonly HotKey[]
  /** With the most time left first. */
  readonly blocked: readonly BlockedKey[]
}

/** Milliseconds for which the store counts this observer as live. It should not appear as a process for longer than one look. */
const GONE_AT_ONCE = 1
/** A process that reports rules receives the rules of others. This one has none. */
const NO_RULES = '[]'
const MOST_POLICIES = 1_000

/** Watches a cluster through its store. Processes report their status while a watcher is there. The watcher itself counts nothing. */
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
    // The store reports blocks only of policies that this heartbeat names, and their ids come from the rules that processes report.
    // New ids need a second heartbeat without a cursor, which gets all their blocks.
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
      // The store counts this watcher too.
      live: Math.max(nodes.length, heartbeat.nodes - 1),
      nodes: nodes.sort((one, other) => (one.label < other.label ? -1 : 1)),
      limited: rejectedKeys(nodes),
      overshoot: overshootOf(nodes.flatMap(({ policies }) => policies)),
      hot: hottest(nodes),
      blocked: [...this.#blocks.values()]
        .map(({ until, ...rest }) => ({ ...rest, remaining: Math.round(until - now) }))
        .sort((one, other) => other.remaining - one.remaining),
    }
  }

  /** Whether a process has reported a policy with this id. */
  knows(policyId: string): boolean {
    return this.#names.has(policyId)
  }

  /** The newest entries of the audit log, the newest one first. Undefined if the store has no log. */
  async actions(most: number): Promise<readonly AuditEntry[] | undefined> {
    const log = await this.#connection.audit?.()
    return (await log?.list(most))?.flatMap((entry) => parseAuditEntry(entry) ?? [])
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

  /** Adds the reported policies. Returns true if some of them are new. */
  #learn({ rules = [] }: HeartbeatReply): boolean {
    let isNew = false
    for (const { id, name } of rules.flatMap((told) => toldPolicies(told.rules)).slice(0, MOST_POLICIES)) {
      isNew ||= !this.#policies.has(id)
      // Reported policies move to the end, so the policy that was reported longest ago is removed first.
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

/** The effect of a policy: it rejects requests, it only counts rejections, or it is a candidate for later. */
export type Mode = 'enforced' | 'dry-run' | 'candidate'

/** The view with only the keys and the overshoot of policies of one mode. */
export function ofMode(view: ClusterView, mode: Mode): ClusterView {
  const policies = view.nodes.flatMap((node) => node.policies)
  const dry = new Set(policies.filter(({ dryRun }) => dryRun).map(({ name }) => name))
  const modeOf = (name: string): Mode => (name.startsWith(CANDIDATE) ? 'candidate' : dry.has(name) ? 'dry-run' : 'enforced')
  const fits = ({ policy }: { readonly policy: string }): boolean => modeOf(policy) === mode
  return {
    ...view,
    limited: view.limited.filter(fits),
    overshoot: overshootOf(policies.filter(({ name }) => modeOf(name) === mode)),
    hot: view.hot.filter(fits),
    blocked: view.blocked.filter(fits),
  }
}

/** The beginning of the names of candidates. */
const CANDIDATE = 'next:'

function overshootOf(policies: readonly PolicyStatus[]): ClusterView['overshoot'] {
  return {
    measured: Math.max(0, ...policies.map(({ measuredOvershoot }) => measuredOvershoot)),
    possible: Math.max(0, ...policies.map(({ overshoot }) => overshoot)),
  }
}

/** Adds up the reports of a key. Times are since the report, so its age is added. */
function rejectedKeys(nodes: readonly WatchedNode[]): readonly RejectedKey[] {
  const keys = new Map<string, RejectedKey>()
  for (const { limited, age } of nodes) {
    for (const one of limited) {
      const id = JSON.stringify([one.policy, one.key])
      const before = keys.get(id)
      const [sinceFirstMs, sinceLastMs] = [one.sinceFirstMs + age, one.sinceLastMs + age]
      if (before === undefined) {
        keys.set(id, { ...one, sinceFirstMs, sinceLastMs, processes: 1 })
        continue
      }
      keys.set(id, {
        ...before,
        reason: sinceLastMs < before.sinceLastMs ? one.reason : before.reason,
        rejectedLastMinute: before.rejectedLastMinute + one.rejectedLastMinute,
        rejected: before.rejected + one.rejected,
        sinceFirstMs: Math.max(before.sinceFirstMs, sinceFirstMs),
        sinceLastMs: Math.min(before.sinceLastMs, sinceLastMs),
        processes: before.processes + 1,
      })
    }
  }
  return [...keys.values()].sort((one, other) => other.rejectedLastMinute - one.rejectedLastMinute || other.rejected - one.rejected)
}

/** Lists each key once. `used` is the highest count that a process reports, or the sum of their own counts if it is higher. */
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
