import type { Limiter } from '../decide/limiter.ts'
import { boundedOnce, copied } from '../keys/key-text.ts'
import { show, WeirError } from '../report/errors.ts'

/** Which policies something is of. */
export interface PolicyChoice {
  /** A policy's name. Default: all policies. */
  readonly policy?: string
}

/** @throws WeirError `WEIR_UNKNOWN_POLICY` */
export function limitersOf(limiters: readonly Limiter[], { policy: name }: PolicyChoice): readonly Limiter[] {
  if (name === undefined) return limiters
  const limiter = limiters.find(({ policy }) => policy.name === name)
  if (limiter === undefined) {
    const names = limiters.map(({ policy }) => show(policy.name)).join(', ')
    throw new WeirError('WEIR_UNKNOWN_POLICY', `There is no policy ${show(name)}; there is ${names}.`)
  }
  return [limiter]
}

/**
 * A key as it is counted, in memory of its own: what is told to the store may wait for long.
 *
 * @throws WeirError `WEIR_INVALID_KEY`
 */
export function countedKey(key: unknown): string {
  if (typeof key !== 'string') throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, not ${show(key)}.`)
  return copied(boundedOnce(key))
}
