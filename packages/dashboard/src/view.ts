import type { ClusterNode, KeyRejections, RequestRejection, Snapshot, WaitingKey } from '@weir/core/inspect'
import type { LogEntry, NodeView, PolicyView, ReasonView, TopKey, View } from './protocol.ts'
import { type Rates, STALE } from './rates.ts'

/** The most keys of one policy, so that a policy with many keys does not hide the others. */
const MOST_TOP = 25
const MOST_WAITING = 25
const MOST_REJECTED = 100
/** Prefix of candidate policies, which only judge requests. */
const NEXT = 'next:'

/** Combines this process's snapshot with the reports of the others. */
export function makeView(
  snapshot: Snapshot,
  nodes: readonly ClusterNode[],
  rates: Rates,
  about: {
    readonly time: number
    readonly actions: boolean
    readonly log: readonly LogEntry[]
    note(key: string): string
    readonly settled: boolean
  },
): View {
  const policies = policyViews(snapshot, nodes, rates)
  const nodeList = nodeViews(nodes, rates)
  const allowed = sum(nodeList.map(({ allowedRate }) => allowedRate))
  const rejected = sum(nodeList.map(({ rejectedRate }) => rejectedRate))
  const { time, actions, log, note, settled } = about
  // Other processes report some moments after the first page was opened. Until then the number of requests is unknown.
  const known = settled || (nodes.length >= snapshot.nodes && nodes.every(({ node }) => rates.knows(node)))
  const top = topKeys(snapshot, nodes, policies)
  return {
    time,
    actions,
    log,
    node: snapshot.node,
    state: snapshot.state,
    storeDownMs: snapshot.storeDownMs,
    nodeCount: Math.max(snapshot.nodes, nodes.length),
    point: [time, known ? allowed : null, known ? rejected : null, Math.max(...nodes.map(({ roundTripMs: roundTrip }) => roundTrip))],
    reasons: reasonViews(nodes, rates),
    policies,
    nodes: nodeList,
    top,
    waiting: waitingKeys(snapshot, nodes),
    blocked: snapshot.blocked,
    sync: snapshot.sync,
    judged: judgedBy(nodes),
    notes: Object.fromEntries([...top, ...snapshot.blocked].flatMap(({ key }) => (note(key) === '' ? [] : [[key, note(key)]]))),
  }
}

/** Reasons for rejections, most frequent first. */
function reasonViews(nodes: readonly ClusterNode[], rates: Rates): ReasonView[] {
  const reasons = Object.keys(nodes[0]?.requests.reasons ?? {}) as RequestRejection[]
  return reasons
    .map((reason) => ({ reason, rate: rates.ofReason(reason), total: sum(nodes.map(({ requests }) => requests.reasons[reason])) }))
    .filter(({ total }) => total > 0)
    .sort((a, b) => b.rate - a.rate || b.total - a.total)
}

function policyViews(snapshot: Snapshot, nodes: readonly ClusterNode[], rates: Rates): PolicyView[] {
  const own = new Map(snapshot.policies.map((policy) => [policy.name, policy]))
  const views = new Map<string, PolicyView>()
  for (const { policies, self } of nodes) {
    for (const policy of policies) {
      const {
        name,
        limit,
        intervalMs: interval,
        algorithm,
        capacity,
        blocked,
        inFlight,
        waiting,
        longestWaitMs: longestWait,
        unsynced,
        leased: held,
        overshoot,
        debt,
      } = policy
      const before = views.get(name)
      const { allowed, rejected } = rates.ofPolicy(name)
      views.set(name, {
        ...own.get(name),
        name,
        limit: before?.limit ?? limit,
        intervalMs: interval,
        algorithm,
        capacity: before?.capacity ?? capacity,
        blocked: blockedKeys(own.get(name), before?.blocked, blocked, self),
        inFlight: (before?.inFlight ?? 0) + inFlight,
        waiting: (before?.waiting ?? 0) + waiting,
        longestWaitMs: Math.max(before?.longestWaitMs ?? 0, longestWait),
        unsynced: (before?.unsynced ?? 0) + unsynced,
        leased: (before?.leased ?? 0) + held,
        overshoot: Math.max(before?.overshoot ?? 0, overshoot),
        debt: Math.max(before?.debt ?? 0, debt),
        allowedRate: allowed,
        rejectedRate: rejected,
      })
    }
  }
  return [...views.values()]
}

/**
 * The number of blocked keys. Processes sync blocks, so this process's number is the newest. With `local` each process blocks alone, so
 * the highest number counts.
 */
function blockedKeys(own: Snapshot['policies'][number] | undefined, before: number | undefined, told: number, self: boolean): number {
  if (self || own === undefined || own.coordination === 'local') return Math.max(before ?? 0, told)
  return before ?? own.blocked
}

function nodeViews(nodes: readonly ClusterNode[], rates: Rates): NodeView[] {
  const all = sum(nodes.map(({ node }) => rates.ofNode(node).allowed))
  return nodes
    .map(({ node, label, self, state, ageMs, uptimeMs, roundTripMs, failures, clockOffsetMs, policies, rules }) => {
      const { allowed, rejected } = rates.ofNode(node)
      const unsynced = sum(policies.map((policy) => policy.unsynced))
      const share = all > 0 ? allowed / all : 0
      return {
        node,
        label,
        self,
        state,
        ageMs,
        uptimeMs,
        roundTripMs,
        failures,
        clockOffsetMs,
        rules,
        allowedRate: allowed,
        rejectedRate: rejected,
        unsynced,
        share,
        stale: !self && ageMs > STALE,
      }
    })
    .sort((a, b) => (a.label < b.label ? -1 : 1))
}

/**
 * The use of each key that a process lists among its most used: the sum of the processes that list it, or the highest confirmed total,
 * whichever is more. Both are lower bounds.
 */
function topKeys(snapshot: Snapshot, nodes: readonly ClusterNode[], policies: readonly PolicyView[]): TopKey[] {
  const capacities = new Map(policies.map(({ name, capacity }) => [name, capacity]))
  const limits = new Map(snapshot.top.map(({ policy, key, limit }) => [JSON.stringify([policy, key]), limit]))
  const found = new Map<string, { policy: string; key: string; known: number; own: number }>()
  const others = nodes.filter(({ self }) => !self).flatMap(({ top }) => top)
  for (const { policy, key, used, own } of [...snapshot.top, ...others]) {
    const id = JSON.stringify([policy, key])
    const before = found.get(id)
    found.set(id, { policy, key, known: Math.max(used, before?.known ?? 0), own: own + (before?.own ?? 0) })
  }
  const keys = [...found]
    .map(([id, { policy, key, known, own }]) => {
      return { policy, key, used: Math.max(known, own), limit: limits.get(id) ?? capacities.get(policy) ?? Number.NaN }
    })
    .sort((a, b) => b.used / b.limit - a.used / a.limit)
  const left = new Map<string, number>()
  return keys.filter(({ policy }) => {
    const count = (left.get(policy) ?? 0) + 1
    left.set(policy, count)
    return count <= MOST_TOP
  })
}

function waitingKeys(snapshot: Snapshot, nodes: readonly ClusterNode[]): WaitingKey[] {
  const found = new Map<string, WaitingKey>()
  for (const one of [...snapshot.waiting, ...nodes.filter(({ self }) => !self).flatMap(({ waiting }) => waiting)]) {
    const id = JSON.stringify([one.policy, one.key])
    const { requests = 0, longest = 0 } = found.get(id) ?? {}
    found.set(id, { ...one, requests: requests + one.requests, longest: Math.max(longest, one.longest) })
  }
  return [...found.values()].sort((a, b) => b.longest - a.longest).slice(0, MOST_WAITING)
}

/**
 * The effect of candidate rules, as the processes report it. For a key it is a lower bound, because a process reports only the keys that it
 * would reject most often.
 */
function judgedBy(nodes: readonly ClusterNode[]): View['judged'] {
  const policies = new Map<string, { name: string; allowed: number; rejected: number }>()
  for (const { name: whole, allowed, rejected } of nodes.flatMap((node) => node.policies)) {
    if (!whole.startsWith(NEXT)) continue
    const name = whole.slice(NEXT.length)
    const before = policies.get(name)
    policies.set(name, { name, allowed: allowed + (before?.allowed ?? 0), rejected: rejected + (before?.rejected ?? 0) })
  }
  const keys = new Map<string, KeyRejections>()
  for (const { policy, key, rejected } of nodes.flatMap(({ wouldReject }) => wouldReject)) {
    const id = JSON.stringify([policy, key])
    keys.set(id, { policy: policy.slice(NEXT.length), key, rejected: rejected + (keys.get(id)?.rejected ?? 0) })
  }
  return { policies: [...policies.values()], keys: [...keys.values()].sort((a, b) => b.rejected - a.rejected).slice(0, MOST_REJECTED) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
