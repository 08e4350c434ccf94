import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import type { Mode } from './protocol.ts'

/** Prefix of the names of candidates from rules, which only judge requests. */
export const NEXT = 'next:'

/**
 * The mode of each policy by name. For a policy that only other processes have, the prefix of candidates and `dryRun` of their reports
 * decide.
 */
export function modesOf(throttler: Throttler<string, never>): (name: string, dryRun?: boolean) => Mode {
  const own = new Map(adapterOf(throttler).policies.map((policy) => [policy.name, policy]))
  return (name, told) => {
    const policy = own.get(name)
    if (policy?.candidate === true || name.startsWith(NEXT)) return 'candidate'
    return (policy?.dryRun ?? told === true) ? 'dry-run' : 'enforced'
  }
}
