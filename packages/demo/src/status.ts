import type { Cluster } from './cluster.ts'
import { WARM_UP } from './processes/messages.ts'

/** Milliseconds. Shorter times are not shown. */
const SHOWN = 50

/** A client that is rejected at the moment. */
export interface LimitedClient {
  readonly key: string
  readonly policy: string
  /** Milliseconds until it is allowed again. */
  readonly left: number
}

/** The sum of the status of all gateways. */
export interface ClusterStatus {
  readonly nodes: number
  readonly states: readonly string[]
  /** Syncs with the store, including failed ones, and key writes in them. */
  readonly syncs: number
  readonly failures: number
  readonly entries: number
  /** Commands that the Redis server executed. Undefined without one. */
  readonly commands: number | undefined
  readonly limited: readonly LimitedClient[]
}

/** The status at the end of the traffic, before the last answers arrived. */
export interface LastLook {
  /** Milliseconds since the epoch. */
  readonly end: number
  readonly status: ClusterStatus
}

/** @param now milliseconds since the epoch */
export function statusOf({ gateways, commands }: Cluster, now: number): ClusterStatus {
  const snapshots = gateways.flatMap(({ snapshot }) => (snapshot === undefined ? [] : [snapshot]))
  const total = (field: 'exchanges' | 'failures' | 'entries'): number =>
    gateways.reduce((sum, { snapshot, baseline }) => sum + (snapshot?.sync[field] ?? 0) - (baseline?.sync[field] ?? 0), 0)
  const limited = new Map<string, LimitedClient>()
  // Gateways receive a block at different moments, so the longest remaining time counts.
  const add = (key: string, policy: string, left: number): void => {
    // Keys of the warm-up are no part of the run.
    if (left < SHOWN || key === WARM_UP) return
    const id = `${policy} ${key}`
    if (left > (limited.get(id)?.left ?? 0)) limited.set(id, { key, policy, left })
  }
  for (const { snapshot, snapshotTime } of gateways) {
    const age = now - snapshotTime
    for (const { key, policy, remainingMs: remaining } of snapshot?.blocked ?? []) add(key, policy, remaining - age)
    // Without a cooldown, a key whose limit is used up is rejected until the interval ends.
    for (const { key, policy, used, limit } of snapshot?.top ?? []) {
      const interval = snapshot?.policies.find(({ name }) => name === policy)?.intervalMs ?? 1
      const left = interval - (snapshotTime % interval) - age
      if (used >= limit) add(key, policy, left)
    }
  }
  return {
    nodes: Math.max(0, ...snapshots.map(({ nodes }) => nodes)),
    states: gateways.map(({ snapshot }) => snapshot?.state ?? 'starting'),
    syncs: total('exchanges'),
    failures: total('failures'),
    entries: total('entries'),
    commands: commands?.total,
    limited: [...limited.values()].sort((a, b) => b.left - a.left),
  }
}

/** Computes rates per second from growing totals, over about the last second. */
export class Rates {
  readonly #samples: { readonly time: number; readonly syncs: number; readonly operations: number }[] = []

  /** @returns syncs and store operations per second. Operations are the server's commands, or key writes without a server */
  add(time: number, { syncs, entries, commands }: ClusterStatus): { readonly syncs: number; readonly operations: number } {
    const samples = this.#samples
    const now = { time, syncs, operations: commands ?? entries }
    samples.push(now)
    while (samples.length > 2 && time - (samples[1]?.time ?? time) >= 1000) samples.shift()
    const first = samples[0] ?? now
    const elapsed = (now.time - first.time) / 1000
    if (elapsed <= 0) return { syncs: 0, operations: 0 }
    return { syncs: (now.syncs - first.syncs) / elapsed, operations: (now.operations - first.operations) / elapsed }
  }
}
