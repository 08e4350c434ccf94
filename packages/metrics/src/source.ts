import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { checkOptions, type Snapshot, snapshot } from '@weir/core/inspect'

/** Whether a policy rejects requests, only counts them (`dryRun`), or is a candidate. */
export type Mode = 'enforced' | 'dry-run' | 'candidate'

/** A snapshot with the mode of each policy. */
export interface SourceSnapshot extends Snapshot {
  readonly policies: readonly (Snapshot['policies'][number] & { readonly mode: Mode })[]
}

/** Prefix for names of candidates that come from rules. */
const NEXT = 'next:'

/**
 * A snapshot without lists of keys, because no metric needs them. A candidate from rules has the name of the policy that it may replace, so
 * that both are found by one name.
 */
export function readSource(source: Throttler<string, never>): SourceSnapshot {
  const candidates = new Set(adapterOf(source).inspected.limiters.flatMap(({ policy }) => (policy.candidate ? [policy.name] : [])))
  const taken = snapshot(source, { top: 0, blocked: 0 })
  const policies = taken.policies.map((policy) => {
    const { name, dryRun } = policy
    if (!candidates.has(name)) return { ...policy, mode: dryRun ? ('dry-run' as const) : ('enforced' as const) }
    const plain = name.startsWith(NEXT) ? name.slice(NEXT.length) : name
    // Two candidates must not share their labels, because their values would add up.
    return { ...policy, name: candidates.has(plain) ? name : plain, mode: 'candidate' as const }
  })
  return { ...taken, policies }
}

/**
 * @param of name of the function, for errors
 * @param names the allowed options
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function checkArguments(of: string, throttler: Throttler<string, never>, options: object, names: readonly string[]): void {
  adapterOf(throttler)
  checkOptions(of, options, names, `options such as { ${names.join(', ')} }`)
}
