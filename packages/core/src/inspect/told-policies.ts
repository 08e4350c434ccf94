import { policyId } from '../decide/check-policy.ts'

/** A policy that some node counts by. */
export interface ToldPolicy {
  /** As in a store (`StorePolicy.id`). */
  readonly id: string
  readonly name: string
}

/**
 * The policies of a text in which a node tells the others of its rules, for programs that look at a cluster through its store
 * (`HeartbeatReply.rules`). What can't be read is left out: a store's content is not to be trusted.
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
