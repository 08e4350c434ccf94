import { isPlanMatch } from './plans.ts'

/** Whether two options are the same: data by what it says, functions and what only they know by identity. */
export function alike(one: unknown, two: unknown): boolean {
  if (one === two) return true
  if (isPlanMatch(one) && isPlanMatch(two)) {
    return one.plan === two.plan && one.group.of === two.group.of && alike(one.match, two.match)
  }
  if (typeof one !== 'object' || typeof two !== 'object' || one === null || two === null) return false
  // What is no plain data keeps what it says to itself.
  if (!isData(one) || !isData(two)) return false
  const names = Object.keys(one)
  if (names.length !== Object.keys(two).length) return false
  return names.every((name) => alike((one as Record<string, unknown>)[name], (two as Record<string, unknown>)[name]))
}

function isData(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Array.isArray(value)
}
