import { randomBytes } from 'node:crypto'
import { systemClock, WeirError } from '@weir/core'
import {
  type AuditEntry,
  type MergedKeyUsage,
  type MergedLimitedKey,
  mergeLimited,
  mergeTop,
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

/** The status that a process reported. */
export interface WatchedNode extends NodeStatus {
  /** Milliseconds since the report. */
  readonly age: number
}

/** The open reservations of a policy at all processes, and their units. */
export interface OpenReservations {
  readonly policy: string
  readonly open: number
  readonly units: number
}

/** A cluster, as its store shows it. */
export interface ClusterView {
  /** Live processes, including processes that have not reported a status yet. */
  readonly live: number
  readonly nodes: readonly WatchedNode[]
  /** Keys whose requests are rejected, most rejections in the last minute first. */
  readonly limited: readonly MergedLimitedKey[]
  /** How far a key was above its limit in the last hour, at most, and how far one may be now, as parts of the limit. */
  readonly overshoot: { readonly measured: number; readonly possible: number }
  /** Nearest to their limits first. */
  readonly hot: readonly MergedKeyUsage[]
  /** Policies with open reservations, most units first. */
  readonly reservations: readonly OpenReservations[]
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
      limited: mergeLimited(nodes.map(({ limited, age }) => ({ limited, ageMs: age }))),
      overshoot: overshootOf(nodes.flatMap(({ policies }) => policies)),
      hot: mergeTop(nodes),
      reservations: reservationsOf(nodes.flatMap(({ policies }) => policies)),
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
    reservations: view.reservations.filter(fits),
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

function reservationsOf(policies: readonly PolicyStatus[]): readonly OpenReservations[] {
  const sums = new Map<string, OpenReservations>()
  for (const { name: policy, reservations } of policies) {
    if (reservations === undefined) continue
    const { open, units } = sums.get(policy) ?? { open: 0, units: 0 }
    sums.set(policy, { policy, open: open + reservations.open, units: units + reservations.units })
  }
  return [...sums.values()].sort((one, other) => other.units - one.units)
}
