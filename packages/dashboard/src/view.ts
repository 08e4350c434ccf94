import type { ClusterNode, Snapshot } from '@weir/core/inspect'
import type { LogEntry, NodeView, PolicyView, TopKey, View } from './protocol.ts'
import type { Rates } from './rates.ts'

/** Keys of one policy: a large limit would hide the others. */
const MOST_TOP = 25

/** Puts together what this node knows and what the others have told. */
export function makeView(
  snapshot: Snapshot,
  nodes: readonly ClusterNode[],
  rates: Rates,
  about: { readonly time: number; readonly actions: boolean; readonly log: readonly LogEntry[] },
): View {
  const policies = policyViews(snapshot, nodes, rates)
  const nodeList = nodeViews(nodes, rates)
  const admitted = sum(nodeList.map(({ admittedRate }) => admittedRate))
  const refused = sum(nodeList.map(({ refusedRate }) => refusedRate))
  return {
    ...about,
    node: snapshot.node,
    state: snapshot.state,
    degradedFor: snapshot.degradedFor,
    nodeCount: Math.max(snapshot.nodes, nodes.length),
    point: [about.time, admitted, refused, Math.max(...nodes.map(({ roundTrip }) => roundTrip))],
    policies,
    nodes: nodeList,
    top: topKeys(snapshot, nodes, policies),
    blocked: snapshot.blocked,
    sync: snapshot.sync,
  }
}

function policyViews(snapshot: Snapshot, nodes: readonly ClusterNode[], rates: Rates): PolicyView[] {
  const own = new Map(snapshot.policies.map((policy) => [policy.name, policy]))
  const views = new Map<string, PolicyView>()
  for (const { policies } of nodes) {
    for (const policy of policies) {
      const { name, limit, interval, algorithm, capacity, blocked, unsynced, held, overshoot } = policy
      const before = views.get(name)
      const { admitted, refused } = rates.ofPolicy(name)
      views.set(name, {
        ...own.get(name),
        name,
        limit: before?.limit ?? limit,
        interval,
        algorithm,
        capacity: before?.capacity ?? capacity,
        blocked: Math.max(before?.blocked ?? 0, blocked),
        unsynced: (before?.unsynced ?? 0) + unsynced,
        held: (before?.held ?? 0) + held,
        overshoot: Math.max(before?.overshoot ?? 0, overshoot),
        admittedRate: admitted,
        refusedRate: refused,
      })
    }
  }
  return [...views.values()]
}

function nodeViews(nodes: readonly ClusterNode[], rates: Rates): NodeView[] {
  const all = sum(nodes.map(({ node }) => rates.ofNode(node).admitted))
  return nodes
    .map(({ node, label, self, state, age, uptime, roundTrip, failures, clockOffset, policies }) => {
      const { admitted, refused } = rates.ofNode(node)
      const unsynced = sum(policies.map((policy) => policy.unsynced))
      const share = all > 0 ? admitted / all : 0
      return {
        node,
        label,
        self,
        state,
        age,
        uptime,
        roundTrip,
        failures,
        clockOffset,
        admittedRate: admitted,
        refusedRate: refused,
        unsynced,
        share,
      }
    })
    .sort((a, b) => (a.label < b.label ? -1 : 1))
}

/**
 * Of each key that a node counts among its most used: what the nodes that told of it have admitted together, or what one
 * of them knows where that is more. Both are lower bounds of the truth.
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
