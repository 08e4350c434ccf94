import type { ClusterNode, Snapshot } from '@weir/core/inspect'
import type { PolicyView, TopKey } from './protocol.ts'

/** The most keys of one policy, so that a policy with many keys does not hide the others. */
const MOST = 25

/**
 * The use of each key that a process lists among its most used, nearest to its limit first. For counters it is the sum of the processes
 * that list the key, or the highest confirmed total, whichever is more. Both are lower bounds. For buckets it is the highest level,
 * because units drain and a sum would count them again. With coordination `'local'` each process counts alone, and with `'central'` each
 * process's own count is the store's, so the highest use counts.
 */
export function topKeys(
  snapshot: Snapshot,
  nodes: readonly ClusterNode[],
  policies: ReadonlyMap<string, Pick<PolicyView, 'algorithm' | 'capacity' | 'coordination'>>,
): TopKey[] {
  const limits = new Map(snapshot.top.map(({ policy, key, limit }) => [JSON.stringify([policy, key]), limit]))
  const found = new Map<string, { policy: string; key: string; known: number; own: number }>()
  const others = nodes.filter(({ self }) => !self).flatMap(({ top }) => top)
  for (const { policy, key, used, own } of [...snapshot.top, ...others]) {
    const id = JSON.stringify([policy, key])
    const before = found.get(id)
    found.set(id, { policy, key, known: Math.max(used, before?.known ?? 0), own: own + (before?.own ?? 0) })
  }
  return [...found]
    .map(([id, { policy, key, known, own }]) => {
      const { algorithm = '', capacity = Number.NaN, coordination } = policies.get(policy) ?? {}
      const limit = limits.get(id) ?? capacity
      const isBucket = algorithm.includes('bucket')
      const used = isBucket || coordination === 'local' || coordination === 'central' ? known : Math.max(known, own)
      const debt = isBucket ? Math.max(0, used - limit) : 0
      return { policy, key, used: used - debt, limit, debt }
    })
    .sort((a, b) => (b.used + b.debt) / b.limit - (a.used + a.debt) / a.limit)
}

/** The keys that a view shows. */
export function mostOfEach(keys: readonly TopKey[]): TopKey[] {
  const counts = new Map<string, number>()
  return keys.filter(({ policy }) => {
    const count = (counts.get(policy) ?? 0) + 1
    counts.set(policy, count)
    return count <= MOST
  })
}
