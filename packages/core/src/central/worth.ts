import type { Question } from '../store/contract.ts'

/**
 * When the store need no longer be told of something, milliseconds since the Unix epoch: all that the key could have used at that time has
 * run out. Not only the units that it counts: those that came before and after them in a bucket run out one after the other.
 */
export function worthUntil({ policy: { step, parameters }, units, limit, at }: Question): number {
  const state: number[] = []
  step.add(state, at, Math.max(units, 1, Math.min(limit, Number.MAX_SAFE_INTEGER)), limit, parameters)
  return at + step.lifetime(state, at, limit, parameters)
}
