import type { Question } from '../store/contract.ts'

/**
 * When a report has no effect on the store any more, in milliseconds since the Unix epoch: when all units that the key could have had then
 * have expired. That is not only its own units, because in a bucket the units before and after them drain one after the other.
 */
export function worthUntil({ policy: { step, parameters }, units, limit, at }: Question): number {
  const state: number[] = []
  step.add(state, at, Math.max(units, 1, Math.min(limit, Number.MAX_SAFE_INTEGER)), limit, parameters)
  return at + step.lifetime(state, at, limit, parameters)
}
