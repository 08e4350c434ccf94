import { type ClusterNode, mergeTop, type Snapshot } from '@weir/core/inspect'
import type { TopKey } from './protocol.ts'

/** The most keys of one policy, so that a policy with many keys does not hide the others. */
const MOST = 25

/** The use of each key that a process lists among its most used, nearest to its limit first. */
export function topKeys(snapshot: Snapshot, nodes: readonly ClusterNode[]): TopKey[] {
  // The snapshot lists more keys than this process's report.
  return mergeTop([snapshot, ...nodes.filter(({ self }) => !self)])
}

/** The keys that a view shows: the first ones of each policy. */
export function mostOfEach<Key extends { readonly policy: string }>(keys: readonly Key[]): Key[] {
  const counts = new Map<string, number>()
  return keys.filter(({ policy }) => {
    const count = (counts.get(policy) ?? 0) + 1
    counts.set(policy, count)
    return count <= MOST
  })
}
