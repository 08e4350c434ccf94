import type { Coordination } from '../algorithms/algorithm.ts'
import { countsAtStore, isDecidedByStore } from '../decide/coordination.ts'
import type { NodeStatus } from './node-status.ts'
import { byLastMinute, type LimitedKey } from './snapshot.ts'

/** The use of a key, by the reports of several processes. */
export interface MergedKeyUsage {
  readonly policy: string
  readonly key: string
  /** Units that count now. At most `limit` for a bucket. */
  readonly used: number
  /** The key's limit: for buckets the burst. */
  readonly limit: number
  /** Units of a bucket above its burst, which have to drain before the next request is allowed. 0 for other algorithms. */
  readonly debt: number
}

/** The rejections of a key in several processes. Counts are sums, and the reason is that of the last rejection. */
export interface MergedLimitedKey extends LimitedKey {
  /** Processes that report the key. */
  readonly processes: number
}

/**
 * Merges the most used keys that processes report, nearest to its limit first.
 *
 * For counters the use is the sum of the processes that list the key, or the highest confirmed total, whichever is more. Both are lower
 * bounds. For buckets it is the highest level, because units drain and a sum would count them again. With coordination `'local'` each
 * process counts alone, and with `'central'` each process's own count is the store's, so the highest use counts.
 */
export function mergeTop(reports: readonly Pick<NodeStatus, 'top' | 'policies'>[]): MergedKeyUsage[] {
  const policies = new Map(reports.flatMap((report) => report.policies.map((one) => [one.name, one] as const)).reverse())
  const found = new Map<string, { policy: string; key: string; known: number; own: number; limit: number }>()
  for (const { policy, key, used, own, limit } of reports.flatMap(({ top }) => top)) {
    const id = JSON.stringify([policy, key])
    const before = found.get(id)
    found.set(id, {
      policy,
      key,
      known: Math.max(used, before?.known ?? 0),
      own: own + (before?.own ?? 0),
      limit: before?.limit ?? limit,
    })
  }
  const share = ({ used, debt, limit }: MergedKeyUsage): number => (used + debt) / limit
  return [...found.values()]
    .map(({ policy, key, known, own, limit }) => {
      const reported = policies.get(policy)
      const isBucket = reported?.algorithm.includes('bucket') === true
      const used = isBucket || !addsUp(reported?.coordination) ? known : Math.max(known, own)
      const debt = isBucket ? Math.max(0, used - limit) : 0
      return { policy, key, used: used - debt, limit, debt }
    })
    .sort((a, b) => share(b) - share(a))
}

/** Whether each process counts other requests of a key than the others. A report of another version may have any coordination. */
function addsUp(reported: string | undefined): boolean {
  const policy = { coordination: reported as Coordination | undefined }
  return countsAtStore(policy) && !isDecidedByStore(policy)
}

/**
 * Merges the limited keys that processes report, most rejections in the last minute first. A process lists only its most rejected keys, so
 * the counts are lower bounds. Times are since now.
 */
export function mergeLimited(reports: readonly { readonly ageMs: number; readonly limited: readonly LimitedKey[] }[]): MergedLimitedKey[] {
  const keys = new Map<string, MergedLimitedKey>()
  for (const { limited, ageMs } of reports) {
    for (const one of limited) {
      const id = JSON.stringify([one.policy, one.key])
      const { reason, rejectedLastMinute, rejected } = one
      const [sinceFirstMs, sinceLastMs] = [one.sinceFirstMs + ageMs, one.sinceLastMs + ageMs]
      const before = keys.get(id)
      keys.set(id, {
        policy: one.policy,
        key: one.key,
        reason: before !== undefined && before.sinceLastMs < sinceLastMs ? before.reason : reason,
        rejectedLastMinute: rejectedLastMinute + (before?.rejectedLastMinute ?? 0),
        rejected: rejected + (before?.rejected ?? 0),
        sinceFirstMs: Math.max(sinceFirstMs, before?.sinceFirstMs ?? 0),
        sinceLastMs: Math.min(sinceLastMs, before?.sinceLastMs ?? Number.POSITIVE_INFINITY),
        processes: 1 + (before?.processes ?? 0),
      })
    }
  }
  return [...keys.values()].sort(byLastMinute)
}
