import type { ClusterNode, RequestRejection, Snapshot, WaitingKey } from '@weir/core/inspect'
import type { Busiest } from './busiest.ts'
import type { Candidates } from './candidates.ts'
import type { Charts } from './charts.ts'
import type { KeyMemory } from './key-memory.ts'
import type { LimitedKeys } from './limited.ts'
import type { LogEntry, Mode, NodeView, PolicyView, ReasonView, TopKey, View } from './protocol.ts'
import { type Rates, STALE } from './rates.ts'
import type { settingsOf } from './settings.ts'
import { mostOfEach, topKeys } from './top-keys.ts'

const MOST_WAITING = 25

/** The memory of earlier views. */
export interface Memory {
  readonly rates: Rates
  readonly charts: Charts
  readonly limited: LimitedKeys
  readonly busiest: Busiest
  readonly candidates: Candidates
  readonly keys: KeyMemory
}

interface About {
  readonly time: number
  readonly log: readonly LogEntry[]
  /** Whether the reports of all processes should have arrived. A process without one runs another version. */
  readonly settled: boolean
  mode(policy: string, dryRun?: boolean): Mode
  /** By policy. */
  readonly settings: ReturnType<typeof settingsOf>
}

/** Combines this process's snapshot with the reports of the others. */
export function makeView(snapshot: Snapshot, nodes: readonly ClusterNode[], memory: Memory, about: About): View {
  const { time, log, settled, mode, settings } = about
  const { rates, charts, limited, busiest, candidates, keys } = memory
  const policies = policiesOf(snapshot, nodes)
  const used = topKeys(snapshot, nodes)
  busiest.add(used, time)
  const top = mostOfEach(used)
  const blocked = snapshot.blocked.map((one) => ({ ...one, untilIntervalEnd: keys.lastsUntilIntervalEnd(one) }))
  const closed = new Set(blocked.map(({ policy, key }) => JSON.stringify([policy, key])))
  const nodeList = nodeViews(nodes, rates)
  const nodeCount = Math.max(snapshot.nodes, nodes.length)
  const isKnown = isComplete(snapshot, nodes, rates, settled)
  const notes = [...top, ...blocked].map(({ key }) => [key, keys.note(key)] as const)
  return {
    time,
    actions: false,
    log,
    node: snapshot.node,
    state: snapshot.state,
    storeDownMs: snapshot.storeDownMs,
    nodeCount,
    reported: nodes.length,
    point: [
      time,
      isKnown ? sum(nodeList.map(({ allowedRate }) => allowedRate)) : null,
      isKnown ? sum(nodeList.map(({ rejectedRate }) => rejectedRate)) : null,
      roundTrip(snapshot, nodes),
    ],
    reasons: reasonViews(nodes, rates),
    policies: [...policies.values()].map((policy): PolicyView => {
      const { name } = policy
      const { allowed, rejected } = rates.ofPolicy(name)
      const isAtLimit = (one: TopKey) => one.policy === name && one.used + 1 > one.limit && !closed.has(JSON.stringify([name, one.key]))
      return {
        ...policy,
        ...settings.get(name),
        mode: mode(name, policy.dryRun),
        atLimit: used.filter(isAtLimit).length,
        busiest: busiest.of(name),
        allowedRate: allowed,
        rejectedRate: rejected,
      }
    }),
    nodes: nodeList,
    top,
    waiting: waitingKeys(snapshot, nodes),
    blocked,
    limited: limited.list(snapshot, nodes, time, mode),
    outages: charts.outages(time, snapshot.storeDownMs),
    sync: snapshot.sync,
    judged: candidates.judged(nodes),
    notes: Object.fromEntries(notes.filter(([, note]) => note !== '')),
  }
}

/**
 * Whether the sum of the processes' rates is the cluster's. Some moments after the first page was opened reports are missing, and while
 * the store is down the rates of other processes are unknown.
 */
function isComplete({ state, nodes: live }: Snapshot, nodes: readonly ClusterNode[], rates: Rates, settled: boolean): boolean {
  if (state === 'storeDown') return live <= 1 && nodes.length <= 1
  return settled || (nodes.length >= live && nodes.every(({ node }) => rates.knows(node)))
}

/** The longest round trip of the last syncs. Null if there was none in the last seconds. */
function roundTrip({ state, sync }: Snapshot, nodes: readonly ClusterNode[]): number | null {
  if (state === 'storeDown' || sync.sinceSuccessMs === undefined || sync.sinceSuccessMs > STALE) return null
  return Math.max(...nodes.map(({ ageMs, state: reported, roundTripMs }) => (ageMs <= STALE && reported !== 'storeDown' ? roundTripMs : 0)))
}

/** Reasons for rejections, most frequent first. */
function reasonViews(nodes: readonly ClusterNode[], rates: Rates): ReasonView[] {
  const reasons = Object.keys(nodes[0]?.requests.reasons ?? {}) as RequestRejection[]
  return reasons
    .map((reason) => ({ reason, rate: rates.ofReason(reason), total: sum(nodes.map(({ requests }) => requests.reasons[reason])) }))
    .filter(({ total }) => total > 0)
    .sort((a, b) => b.rate - a.rate || b.total - a.total)
}

/** The fields of a policy's view without the memory of earlier views. */
type PolicySums = Omit<PolicyView, 'mode' | 'atLimit' | 'busiest' | 'allowedRate' | 'rejectedRate'>

function policiesOf(snapshot: Snapshot, nodes: readonly ClusterNode[]): ReadonlyMap<string, PolicySums> {
  const own = new Map(snapshot.policies.map((policy) => [policy.name, policy]))
  const views = new Map<string, PolicySums>()
  for (const { policies, self } of nodes) {
    for (const policy of policies) {
      const { name, limit, intervalMs, algorithm, coordination, capacity, blocked, inFlight, waiting, longestWaitMs, unsynced, leased } =
        policy
      const before = views.get(name)
      views.set(name, {
        dryRun: policy.dryRun,
        ...own.get(name),
        name,
        limit: before?.limit ?? limit,
        intervalMs,
        algorithm,
        coordination,
        capacity: before?.capacity ?? capacity,
        blocked: blockedKeys(own.get(name), before?.blocked, blocked, self),
        inFlight: (before?.inFlight ?? 0) + inFlight,
        reservations: {
          open: (before?.reservations.open ?? 0) + (policy.reservations?.open ?? 0),
          units: (before?.reservations.units ?? 0) + (policy.reservations?.units ?? 0),
        },
        waiting: (before?.waiting ?? 0) + waiting,
        longestWaitMs: Math.max(before?.longestWaitMs ?? 0, longestWaitMs),
        unsynced: (before?.unsynced ?? 0) + unsynced,
        leased: (before?.leased ?? 0) + leased,
        overshoot: Math.max(before?.overshoot ?? 0, policy.overshoot),
        measuredOvershoot: Math.max(before?.measuredOvershoot ?? 0, policy.measuredOvershoot),
        debt: Math.max(before?.debt ?? 0, policy.debt),
      })
    }
  }
  return views
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
    .map(({ node, label, self, state, ageMs, uptimeMs, roundTripMs, failures, failuresLastHour, clockOffsetMs, policies, rules }) => {
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
        failuresLastHour,
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

function waitingKeys(snapshot: Snapshot, nodes: readonly ClusterNode[]): WaitingKey[] {
  const found = new Map<string, WaitingKey>()
  for (const one of [...snapshot.waiting, ...nodes.filter(({ self }) => !self).flatMap(({ waiting }) => waiting)]) {
    const id = JSON.stringify([one.policy, one.key])
    const { requests = 0, longest = 0 } = found.get(id) ?? {}
    found.set(id, { ...one, requests: requests + one.requests, longest: Math.max(longest, one.longest) })
  }
  return [...found.values()].sort((a, b) => b.longest - a.longest).slice(0, MOST_WAITING)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
