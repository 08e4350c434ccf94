import { waitsForStore } from '../decide/coordination.ts'
import type { PolicyOptions } from '../decide/policy.ts'
import type { Inspected } from '../throttler/coordinator.ts'
import type { RuleSet } from './check.ts'
import { KeyTally } from './key-tally.ts'
import type { MadePolicy } from './policy.ts'

/** The decisions of one candidate policy in this process, since it is judged. */
export interface JudgedPolicy {
  /** As in `next` of the document; of a policy with plans one for each. */
  readonly policy: string
  /** Units that it would have allowed. */
  readonly allowed: number
  /** Requests that it would have rejected. */
  readonly rejected: number
  /** The keys that it would have rejected most often, at most 20, the most often first. Of very many keys the counts are estimates. */
  readonly keys: readonly { readonly key: string; readonly rejected: number }[]
}

/** Goes before the names of policies that are only judged. */
const PREFIX = 'next:'
/** Keys whose rejections are counted, of each policy, and told. */
const COUNTED_KEYS = 200
const TOLD_KEYS = 20

/** The name under which a policy of rules to come is judged. */
export function nextName(name: string): string {
  return PREFIX + name
}

/**
 * Rules to come as policies beside those that hold. They ask the store nothing for a single request, and hold none: what would wait is
 * judged by what is known here. Slots (`concurrency()`) are left out, since a request that is rejected never ends.
 */
export function toBeJudged<Req>({ policies }: RuleSet<Req>): readonly MadePolicy<Req>[] {
  return policies.flatMap((policy): MadePolicy<Req>[] => {
    const { name = 'default', algorithm, coordination, storeTimeout: _, delay: __, ...rest } = policy as PolicyOptions<Req>
    if (algorithm !== undefined && 'slots' in algorithm) return []
    const known = algorithm === undefined || algorithm.shape?.coordinations.includes('background') ? undefined : ('local' as const)
    const made = {
      ...rest,
      name: nextName(name),
      algorithm,
      coordination: waitsForStore({ coordination }) ? known : coordination,
      candidate: true,
    }
    return [Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined)) as unknown as MadePolicy<Req>]
  })
}

/** Has the limiters of rules to come note whom they would reject. */
export function noteRejections({ limiters }: Inspected): void {
  for (const limiter of limiters) if (limiter.policy.candidate) limiter.rejectedKeys ??= new KeyTally(COUNTED_KEYS)
}

export function judgementOf({ limiters }: Inspected): readonly JudgedPolicy[] {
  return limiters.flatMap(({ policy, meter, stats, rejectedKeys }) => {
    if (!policy.candidate) return []
    const keys = rejectedKeys?.top(TOLD_KEYS) ?? []
    return [{ policy: policy.name.slice(PREFIX.length), allowed: meter.allowed, rejected: stats.rejected, keys }]
  })
}
