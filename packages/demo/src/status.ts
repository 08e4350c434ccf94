import type { Cluster } from './cluster.ts'
import { WARM_UP } from './processes/messages.ts'

/** Less than this is shown as nothing, in milliseconds. */
const SHOWN = 50

/** A client that is rejected at the moment. */
export interface BlockedClient {
  readonly key: string
  readonly policy: string
  /** Milliseconds left. */
  readonly left: number
}

/** The status of all gateways, added up. */
export interface ClusterStatus {
  readonly nodes: number
  readonly states: readonly string[]
  /** Exchanges with the store, failed ones too, and keys exchanged in them. */
  readonly syncs: number
  readonly failures: number
  readonly entries: number
  /** Commands that the Redis server executed; undefined without one. */
  readonly commands: number | undefined
  readonly blocked: readonly BlockedClient[]
}

/** How things stood when the traffic ended; answers have come in since. */
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
  const blocked = new Map<string, BlockedClient>()
  // One gateway may have heard of a block a moment before the others.
  const add = (key: string, policy: string, left: number): void => {
    // Keys of the warm-up don't belong to the run.
    if (left < SHOWN || key === WARM_UP) return
    const id = `${policy} ${key}`
    if (left > (blocked.get(id)?.left ?? 0)) blocked.set(id, { key, policy, left })
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
    blocked: [...blocked.values()].sort((a, b) => b.left - a.left),
  }
}

/** Turns growing totals into figures per second, over the last second or so. */
export class Rates {
  readonly #samples: { readonly time: number; readonly syncs: number; readonly operations: number }[] = []

  /** @returns syncs and store operations per second: commands of the server, or keys exchanged without one */
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
