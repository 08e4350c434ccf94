import { waitsForStore } from '../decide/coordination.ts'
import type { PolicyOptions } from '../decide/policy.ts'
import type { Inspected } from '../throttler/coordinator.ts'
import type { RuleSet } from './check.ts'
import type { MadePolicy } from './policy.ts'

/** The decisions of one candidate policy in this process, since it is judged. Candidates reject no request. */
export interface JudgedPolicy {
  /** Name of the policy, as in `next` of the document. A policy with plans has one entry for each plan. */
  readonly policy: string
  /** Units that it would have allowed. */
  readonly allowed: number
  /** Requests that it would have rejected. */
  readonly rejected: number
  /** The keys that it would have rejected most often, at most 20, most often first. For very many keys the counts are estimates. */
  readonly keys: readonly { readonly key: string; readonly rejected: number }[]
}

/** The prefix for names of policies that are only judged. */
const PREFIX = 'next:'
/** Keys that are reported for each policy. */
const TOLD_KEYS = 20

/** The name under which a candidate policy is judged. */
export function nextName(name: string): string {
  return PREFIX + name
}

/**
 * Candidate rules, as policies beside the rules in use. Their decisions never wait. A policy that would wait for the store is judged by
 * counts that are synced in the background, or by this process's own counts. Slots (`concurrency()`) are left out, because a rejected
 * request never ends.
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

export function judgementOf({ limiters, clock }: Inspected): readonly JudgedPolicy[] {
  const now = clock.monotonic()
  return limiters.flatMap(({ policy, meter, stats, rejectedKeys }) => {
    if (!policy.candidate) return []
    const keys = [...rejectedKeys.read(now)].map(([key, { rejected }]) => ({ key, rejected }))
    keys.sort((a, b) => b.rejected - a.rejected).splice(TOLD_KEYS)
    return [{ policy: policy.name.slice(PREFIX.length), allowed: meter.allowed, rejected: stats.rejected, keys }]
  })
}
