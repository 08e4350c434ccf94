import { policyId } from '../decide/check-policy.ts'

/** A policy that a process of the cluster uses. */
export interface ToldPolicy {
  /** Id of the policy in a store (`StorePolicy.id`). */
  readonly id: string
  readonly name: string
}

/**
 * Returns the policies in a process's report of its rules, for programs that inspect a cluster through its store (`HeartbeatReply.rules`).
 * Unreadable parts are left out, because a store's content is not trusted.
 */
export function toldPolicies(text: string): readonly ToldPolicy[] {
  let rules: unknown
  try {
    rules = JSON.parse(text)
  } catch {
    return []
  }
  if (!Array.isArray(rules)) return []
  return (rules as readonly unknown[]).flatMap((rule) => {
    if (!Array.isArray(rule)) return []
    const [name, interval, algorithm, coordination] = rule as readonly unknown[]
    if (typeof name !== 'string' || typeof algorithm !== 'string' || typeof coordination !== 'string') return []
    if (typeof interval !== 'number' && typeof interval !== 'string') return []
    return [{ id: policyId(algorithm, coordination, interval, name), name }]
  })
}
