import { unknownPolicy } from '../decide/costs.ts'
import type { Policy } from '../decide/policy.ts'
import { isLimit } from '../keys/units.ts'
import { invalidOption } from '../report/errors.ts'
import { countedKey } from './limiters-of.ts'

/** A limit of one key. */
export interface KeyLimit {
  /** The policy's name. */
  readonly policy: string
  /** The key. `'all'` for a policy with `key: 'all'`. */
  readonly key: string
  /** 0 rejects all, `Infinity` allows all, else a number of at least 1. */
  readonly limit: number
}

/** Limits by policy and key. */
export type KeyLimits = ReadonlyMap<string, ReadonlyMap<string, number>>

/** @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION` */
export function keyLimits(limits: readonly KeyLimit[], policies: readonly Policy[]): KeyLimits | undefined {
  const names = new Set(policies.map(({ name }) => name))
  const found = new Map<string, Map<string, number>>()
  let last: string | undefined
  let own = new Map<string, number>()
  // There may be tens of thousands, usually grouped by policy.
  for (const { policy, key, limit } of limits) {
    if (policy !== last && !names.has(policy)) throw unknownPolicy(policy, [...names])
    if (!isLimit(limit)) throw invalidOption('limit', limit, '0, Infinity, or a number of at least 1')
    if (policy !== last) {
      own = found.get(policy) ?? new Map<string, number>()
      found.set(policy, own)
      last = policy
    }
    own.set(countedKey(key), limit)
  }
  return found.size === 0 ? undefined : found
}
