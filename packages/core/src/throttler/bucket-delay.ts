import type { AnyAlgorithm } from '../algorithms/algorithm.ts'
import { drainTime } from '../algorithms/drain-time.ts'
import type { Policy } from '../decide/policy.ts'

/** Milliseconds until a request is allowed that has filled the bucket to this level. */
export function delayOf({ algorithm, interval }: Policy, limit: number, level: number): number {
  return drainTime(level - passingOf(algorithm, limit), limit, interval)
}

/** Units of a bucket that need not wait. */
export function passingOf(algorithm: AnyAlgorithm, limit: number): number {
  return (algorithm.together?.most ?? algorithm.most)?.(limit) ?? limit
}
