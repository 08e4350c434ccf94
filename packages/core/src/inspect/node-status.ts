import { hostname } from 'node:os'
import { threadId } from 'node:worker_threads'
import type { Coordinated } from '../throttler/coordinator.ts'
import { type PolicySnapshot, type Snapshot, snapshot } from './snapshot.ts'

/** This process, for people: host name and process id. */
export const LABEL: string = threadId === 0 ? `${hostname()}:${process.pid}` : `${hostname()}:${process.pid}/${threadId}`

/** One policy at one node, as it is told to the others. Sums are since the node's start. */
export type PolicyStatus = Pick<
  PolicySnapshot,
  | 'name'
  | 'limit'
  | 'interval'
  | 'algorithm'
  | 'capacity'
  | 'keys'
  | 'blocked'
  | 'admitted'
  | 'refused'
  | 'unsynced'
  | 'held'
  | 'overshoot'
  | 'share'
>

/** What a node tells the others of itself while somebody watches the cluster. */
export interface NodeStatus {
  readonly node: string
  /** Host name and process id, for people. */
  readonly label: string
  readonly state: string
  /** Milliseconds since it started, and for which the store has been away from it. */
  readonly uptime: number
  readonly degradedFor: number
  /** Milliseconds that its last exchange took. */
  readonly roundTrip: number
  readonly failures: number
  /** The store's clock less the node's, milliseconds. */
  readonly clockOffset: number
  readonly policies: readonly PolicyStatus[]
  /** Its most used keys. */
  readonly top: readonly { readonly policy: string; readonly key: string; readonly used: number; readonly own: number }[]
}

/** A live node as the store last heard of it. */
export interface ClusterNode extends NodeStatus {
  /** Milliseconds since the store heard of it; 0 for this node. */
  readonly age: number
  /** Whether this is the node that was asked. */
  readonly self: boolean
}

/** Longest text of a status, in UTF-16 units. What does not fit is left out: first keys, then policies. */
export const LONGEST_STATUS = 8_192
const MOST_TOP = 20
/** Longer keys are not told, as a part of one could not be acted upon. */
const LONGEST_KEY = 257

export function statusOf(snapshot: Snapshot, label: string, uptime: number): NodeStatus {
  const { node, state, degradedFor, sync } = snapshot
  const each = Math.max(1, Math.floor(MOST_TOP / Math.max(1, snapshot.policies.length)))
  return {
    node,
    label,
    state,
    uptime: Math.round(uptime),
    degradedFor: Math.round(degradedFor),
    roundTrip: rounded(sync.lastDuration),
    failures: sync.failures,
    clockOffset: rounded(sync.clockOffset),
    policies: snapshot.policies.map(
      ({ name, limit, interval, algorithm, capacity, keys, blocked, admitted, refused, unsynced, held, overshoot, share }) => ({
        name,
        limit,
        interval,
        algorithm,
        capacity,
        keys,
        blocked,
        admitted,
        refused,
        unsynced: rounded(unsynced),
        held: rounded(held),
        overshoot: rounded(overshoot),
        share: rounded(share),
      }),
    ),
    top: mostUsed(snapshot, each).map(({ policy, key, used, own }) => ({ policy, key, used: rounded(used), own: rounded(own) })),
  }
}

/** The status of a node: of all the throttlers in it that share a store. */
export function statusOfAll(throttlers: readonly Coordinated[], startedAt: number, now: number): NodeStatus {
  const snapshots = throttlers.map((inspected) => snapshot({ inspected }))
  const all = {
    ...(snapshots[0] as Snapshot),
    policies: snapshots.flatMap(({ policies }) => policies),
    top: snapshots.flatMap(({ top }) => top),
  }
  return statusOf(all, LABEL, now - startedAt)
}

/** The same as it travels. */
export function tellStatus(throttlers: readonly Coordinated[], startedAt: number, now: number): string {
  return formatStatus(statusOfAll(throttlers, startedAt, now))
}

/** The nearest to their limits; of each policy some, as a large limit would hide the others. */
function mostUsed({ policies, top }: Snapshot, each: number): Snapshot['top'] {
  return policies
    .flatMap(({ name }) => top.filter(({ policy }) => policy === name).slice(0, each))
    .sort((a, b) => b.used / b.limit - a.used / a.limit)
}

/** A status as it travels. */
export function formatStatus(status: NodeStatus): string {
  const top = status.top.filter(({ key }) => key.length <= LONGEST_KEY)
  const policies = [...status.policies]
  for (;;) {
    const text = JSON.stringify({ ...status, policies, top })
    if (text.length <= LONGEST_STATUS || (top.pop() === undefined && policies.pop() === undefined)) return text
  }
}

/** Another node's status, or undefined: it may be of another version, and a store's content is not to be trusted. */
export function parseStatus(text: string): NodeStatus | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value)) return undefined
  const { policies, top } = value
  const good =
    ['node', 'label', 'state'].every((name) => typeof value[name] === 'string') &&
    ['uptime', 'degradedFor', 'roundTrip', 'failures', 'clockOffset'].every((name) => Number.isFinite(value[name])) &&
    Array.isArray(policies) &&
    policies.every(isPolicyStatus) &&
    Array.isArray(top) &&
    top.every(isUsage)
  return good ? (value as unknown as NodeStatus) : undefined
}

function isPolicyStatus(value: unknown): boolean {
  if (!isRecord(value) || typeof value['name'] !== 'string' || typeof value['algorithm'] !== 'string') return false
  return ['limit', 'interval', 'capacity', 'keys', 'blocked', 'admitted', 'refused', 'unsynced', 'held', 'overshoot', 'share'].every(
    (name) => Number.isFinite(value[name]),
  )
}

function isUsage(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['policy'] === 'string' &&
    typeof value['key'] === 'string' &&
    Number.isFinite(value['used']) &&
    Number.isFinite(value['own'])
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
