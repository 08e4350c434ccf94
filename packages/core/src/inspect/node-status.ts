import { hostname } from 'node:os'
import { threadId } from 'node:worker_threads'
import type { WaitingKey } from '../queue/waits.ts'
import { REQUEST_REJECTIONS } from '../report/requests.ts'
import type { RulesStatus } from '../report/rules-status.ts'
import type { Coordinated } from '../throttler/coordinator.ts'
import type { ProcessEvent } from './recent-events.ts'
import type { RequestHistory, RequestsSnapshot } from './requests.ts'
import {
  byLastMinute,
  type KeyRejections,
  type KeyUsage,
  type LimitedKey,
  type PolicySnapshot,
  type Snapshot,
  snapshotOf,
} from './snapshot.ts'

/** Host name and process id of this process, for people. */
export const LABEL: string = threadId === 0 ? `${hostname()}:${process.pid}` : `${hostname()}:${process.pid}/${threadId}`

/** The fields of a policy's status: texts, and numbers, rounded to three decimals. */
export const POLICY_TEXTS = ['name', 'algorithm', 'coordination'] as const
export const POLICY_NUMBERS = [
  'limit',
  'intervalMs',
  'capacity',
  'keys',
  'blocked',
  'allowed',
  'rejected',
  'inFlight',
  'waiting',
  'longestWaitMs',
  'unsynced',
  'leased',
  'overshoot',
  'measuredOvershoot',
  'debt',
  'share',
] as const

/** One policy in one process, as the process reports it to the others. Sums are since the process's start. */
export type PolicyStatus = Pick<PolicySnapshot, 'dryRun' | (typeof POLICY_NUMBERS)[number]> &
  Readonly<Record<(typeof POLICY_TEXTS)[number], string>> & {
    /** The open reservations of the process, and their units. Undefined if there are none. */
    readonly reservations?: Pick<PolicySnapshot['reservations'], 'open' | 'units'> | undefined
  }

/** A process's status for the others, while a dashboard or a command watches the cluster. */
export interface NodeStatus {
  readonly node: string
  /** Host name and process id, for people. */
  readonly label: string
  readonly state: string
  /** Milliseconds since the process started, and for which the store has been down for it. */
  readonly uptimeMs: number
  readonly storeDownMs: number
  /** Milliseconds that its last sync took. */
  readonly roundTripMs: number
  readonly failures: number
  readonly failuresLastHour: number
  /** The store's clock minus the process's, in milliseconds. */
  readonly clockOffsetMs: number
  /** The sums of all its throttlers with this store. */
  readonly requests: RequestsSnapshot
  readonly policies: readonly PolicyStatus[]
  /** The process's most used keys. Keys without a limit are left out. */
  readonly top: readonly KeyUsage[]
  /** Its most rejected keys, most rejections in the last minute first. */
  readonly limited: readonly LimitedKey[]
  /** The keys that requests of the process wait for, longest wait first. */
  readonly waiting: readonly WaitingKey[]
  /** The keys that candidate rules would have rejected most often. */
  readonly wouldReject: readonly KeyRejections[]
  /** Its newest changes of state, newest first. */
  readonly events: readonly ProcessEvent[]
  /** The rules that the process follows. Undefined if it follows none. */
  readonly rules?: RulesStatus | undefined
}

/** A live process, as it last reported to the store. */
export interface ClusterNode extends NodeStatus {
  /** Milliseconds since its last report to the store. 0 for this process. */
  readonly ageMs: number
  /** Whether this is the process that called `cluster`. */
  readonly self: boolean
}

const MOST_TOP = 20
const MOST_WAITING = 10
const MOST_REJECTED = 20
const MOST_LIMITED = 20
/** Milliseconds between which equal events of two throttlers are one. */
const SAME = 100

export function statusOf(snapshot: Snapshot, label: string, uptime: number): NodeStatus {
  const { node, state, storeDownMs, sync, requests } = snapshot
  const each = Math.max(1, Math.floor(MOST_TOP / Math.max(1, snapshot.policies.length)))
  return {
    node,
    label,
    state,
    uptimeMs: Math.round(uptime),
    storeDownMs: Math.round(storeDownMs),
    roundTripMs: rounded(sync.lastDurationMs),
    failures: sync.failures,
    failuresLastHour: sync.failuresLastHour,
    clockOffsetMs: rounded(sync.clockOffsetMs),
    requests: { ...requests, history: told(requests.history) },
    policies: snapshot.policies.map(policyStatusOf),
    top: mostUsed(snapshot, each),
    limited: limitedOf(snapshot),
    waiting: snapshot.waiting.slice(0, MOST_WAITING).map((one) => ({ ...one, longest: Math.round(one.longest) })),
    wouldReject: snapshot.wouldReject.slice(0, MOST_REJECTED),
    events: snapshot.events.map((event) => ({ ...event, ageMs: Math.round(event.ageMs) })),
    rules: snapshot.rules,
  }
}

/** The status of a process, with all its throttlers that share a store. */
export function statusOfAll(throttlers: readonly Coordinated[], startedAt: number, now: number): NodeStatus {
  const snapshots = throttlers.map((inspected) => snapshotOf(inspected))
  const all = {
    ...(snapshots[0] as Snapshot),
    requests: together(snapshots.map(({ requests }) => requests)),
    policies: snapshots.flatMap(({ policies }) => policies),
    top: snapshots.flatMap(({ top }) => top),
    limited: snapshots.flatMap(({ limited }) => limited).sort(byLastMinute),
    waiting: snapshots.flatMap(({ waiting }) => waiting).sort((a, b) => b.longest - a.longest),
    wouldReject: snapshots.flatMap(({ wouldReject }) => wouldReject).sort((a, b) => b.rejected - a.rejected),
    events: withoutCopies(snapshots.flatMap(({ events }) => events)).sort((a, b) => a.ageMs - b.ageMs),
    // Usually all throttlers of a process follow the same rules.
    rules: snapshots.find(({ rules }) => rules !== undefined)?.rules,
  }
  return statusOf(all, LABEL, now - startedAt)
}

function policyStatusOf(policy: PolicySnapshot): PolicyStatus {
  const told = POLICY_NUMBERS.map((name) => [name, rounded(policy[name])])
  const { open, units } = policy.reservations
  return {
    name: policy.name,
    algorithm: policy.algorithm,
    coordination: policy.coordination,
    dryRun: policy.dryRun,
    ...(Object.fromEntries(told) as Record<(typeof POLICY_NUMBERS)[number], number>),
    ...(open > 0 && { reservations: { open, units } }),
  }
}

function told({ slot, ended, allowed, rejected }: RequestHistory): RequestHistory {
  return { slot, ended: Math.round(ended), allowed: allowed.map(Math.round), rejected: rejected.map(Math.round) }
}

/** Adds up throttlers that started at different times. Slots of nearly the same time are added. */
function together(all: readonly RequestsSnapshot[]): RequestsSnapshot {
  const [first, ...others] = all as [RequestsSnapshot, ...RequestsSnapshot[]]
  if (others.length === 0) return first
  const longest = Math.max(...all.map(({ history }) => history.allowed.length))
  const summed = (read: (history: RequestHistory) => readonly number[]) =>
    Array.from({ length: longest }, (_, i) => all.reduce((sum, { history }) => sum + (read(history)[i] ?? 0), 0))
  return {
    allowed: all.reduce((sum, { allowed }) => sum + allowed, 0),
    rejected: all.reduce((sum, { rejected }) => sum + rejected, 0),
    reasons: Object.fromEntries(
      REQUEST_REJECTIONS.map((reason) => [reason, all.reduce((sum, one) => sum + one.reasons[reason], 0)]),
    ) as RequestsSnapshot['reasons'],
    history: { ...first.history, allowed: summed(({ allowed }) => allowed), rejected: summed(({ rejected }) => rejected) },
  }
}

/** Each throttler of a process records the events of the store that they share, some microseconds apart. */
function withoutCopies(events: readonly ProcessEvent[]): ProcessEvent[] {
  const kept: ProcessEvent[] = []
  const seen = new Map<string, number[]>()
  for (const event of events) {
    const { ageMs, ...rest } = event
    const id = JSON.stringify(rest)
    const ages = seen.get(id) ?? []
    seen.set(id, ages)
    if (ages.some((age) => Math.abs(age - ageMs) < SAME)) continue
    ages.push(ageMs)
    kept.push(event)
  }
  return kept
}

/** The keys nearest to their limits. Each policy has some, because a large limit would hide the others. */
function mostUsed({ policies, top }: Snapshot, each: number): NodeStatus['top'] {
  return policies
    .flatMap(({ name }) => top.filter(({ policy, limit }) => policy === name && limit < Number.POSITIVE_INFINITY).slice(0, each))
    .sort((a, b) => b.used / b.limit - a.used / a.limit)
    .map((one) => ({ ...one, used: rounded(one.used), own: rounded(one.own) }))
}

/** Some keys of each policy, because a candidate or a dry run may reject much more than the others, and then the most rejected of all. */
function limitedOf({ policies, limited }: Snapshot): readonly LimitedKey[] {
  const each = Math.max(1, Math.floor(MOST_LIMITED / Math.max(1, policies.length)))
  const fair = policies.flatMap(({ name }) => limited.filter(({ policy }) => policy === name).slice(0, each))
  return [...new Set([...fair, ...limited])]
    .slice(0, MOST_LIMITED)
    .sort(byLastMinute)
    .map((one) => ({ ...one, sinceFirstMs: Math.round(one.sinceFirstMs), sinceLastMs: Math.round(one.sinceLastMs) }))
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
