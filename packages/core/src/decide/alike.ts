import { FIXED_WINDOW } from '../algorithms/fixed-window/epoch.ts'
import { parsePolicy } from './check-policy.ts'
import { isPlanMatch } from './plans.ts'
import type { PolicyOptions } from './policy.ts'
import { isPathMatch } from './request-options.ts'
import { ownRule } from './request-rule.ts'

/** Whether two options are equal: plain data by its content, and functions and other values by identity. */
export function alike(one: unknown, two: unknown): boolean {
  if (one === two) return true
  if (isPlanMatch(one) && isPlanMatch(two)) {
    return one.plan === two.plan && one.group.of === two.group.of && alike(one.match, two.match)
  }
  if (isPathMatch(one) && isPathMatch(two)) return one.id === two.id
  if (typeof one !== 'object' || typeof two !== 'object' || one === null || two === null) return false
  // Values that aren't plain data can't be compared.
  if (!isData(one) || !isData(two)) return false
  const names = Object.keys(one)
  if (names.length !== Object.keys(two).length) return false
  return names.every((name) => alike((one as Record<string, unknown>)[name], (two as Record<string, unknown>)[name]))
}

/**
 * Whether two rules are equal, even if their options are spelled differently. False if one of them is invalid.
 *
 * @param shared whether there is a store
 */
export function sameRule(one: PolicyOptions<never>, two: PolicyOptions<never>, shared: boolean): boolean {
  try {
    return alike(meaningOf(one, shared), meaningOf(two, shared))
  } catch {
    return false
  }
}

function meaningOf(rule: PolicyOptions<never>, shared: boolean): object {
  const { algorithm, calendar, ...policy } = parsePolicy(rule, shared)
  const { key, match, limit, fallbackLimit, cost = 1 } = ownRule(rule)
  // The id contains the calendar. Fixed windows exist as two values, with and without a step, which mean the same. Other algorithms contain
  // their options only in functions.
  return { ...policy, key, match, limit, fallbackLimit, cost, algorithm: algorithm.id === FIXED_WINDOW.id ? undefined : algorithm }
}

/** Whether a value is plain data: a list, or an object without a class. */
export function isData(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Array.isArray(value)
}
