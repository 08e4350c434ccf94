import type { ClusterNode, KeyRejections } from '@weir/core/inspect'
import { NEXT } from './mode.ts'
import type { View } from './protocol.ts'

const MOST_KEYS = 100

/** The effect of candidate rules, beside that of the enforced ones since the candidates began. */
export class Candidates {
  /**
   * By process and candidate: the enforced policy's rejections before the candidate began. Undefined if the candidate began before it was
   * seen.
   */
  #before = new Map<string, number | undefined>()

  /**
   * The sums as the processes report them. For a key it is a lower bound, because a process reports only the keys that it would reject
   * most often.
   */
  judged(nodes: readonly ClusterNode[]): View['judged'] {
    const policies = new Map<string, { name: string; allowed: number; rejected: number; enforcedRejected?: number }>()
    const before = new Map<string, number | undefined>()
    for (const { node, policies: reported, uptimeMs } of nodes) {
      for (const { name: whole, allowed, rejected } of reported) {
        if (!whole.startsWith(NEXT)) continue
        const name = whole.slice(NEXT.length)
        const enforced = reported.find((policy) => policy.name === name)?.rejected
        const id = JSON.stringify([node, whole])
        const isNew = allowed + rejected === 0 || uptimeMs <= NEW
        before.set(id, this.#before.has(id) ? this.#before.get(id) : isNew ? (uptimeMs <= NEW ? 0 : enforced) : undefined)
        const base = before.get(id)
        const since = enforced === undefined || base === undefined ? undefined : Math.max(0, enforced - base)
        const sums = policies.get(name)
        const total =
          sums === undefined
            ? since
            : since === undefined || sums.enforcedRejected === undefined
              ? undefined
              : sums.enforcedRejected + since
        policies.set(name, {
          name,
          allowed: allowed + (sums?.allowed ?? 0),
          rejected: rejected + (sums?.rejected ?? 0),
          ...(total !== undefined && { enforcedRejected: total }),
        })
      }
    }
    this.#before = before
    const keys = new Map<string, KeyRejections>()
    for (const { policy, key, rejected } of nodes.flatMap(({ wouldReject }) => wouldReject)) {
      const id = JSON.stringify([policy, key])
      keys.set(id, {
        policy: policy.startsWith(NEXT) ? policy.slice(NEXT.length) : policy,
        key,
        rejected: rejected + (keys.get(id)?.rejected ?? 0),
      })
    }
    return { policies: [...policies.values()], keys: [...keys.values()].sort((a, b) => b.rejected - a.rejected).slice(0, MOST_KEYS) }
  }
}

/** Milliseconds. A candidate that exists this soon after the start of its process began with it. */
const NEW = 2_000
