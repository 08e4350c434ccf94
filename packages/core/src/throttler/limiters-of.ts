import { unknownPolicy } from '../decide/costs.ts'
import type { Limiter } from '../decide/limiter.ts'
import { boundedOnce, copied } from '../keys/key-text.ts'
import { invalidKey, invalidOption } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import { hush } from '../report/user-function.ts'

/** Restricts a call to one policy. */
export interface PolicyChoice {
  /**
   * Restricts the call to the policy with this name. Throws `WEIR_UNKNOWN_POLICY` if there is none.
   *
   * @default all policies
   */
  readonly policy?: string
}

/** Options of `block`, `unblock`, `reset` and `resetAll`. */
export interface ActionOptions extends PolicyChoice {
  /**
   * Adds the action with this reason to the audit log, which `auditLog` of `@weir/core/inspect` and `weir audit` show. Only the first
   * 255 characters are kept.
   *
   * @default the action isn't in the audit log
   */
  readonly reason?: string | undefined
}

/** The names of `ActionOptions`. */
export const ACTION_OPTIONS: readonly string[] = ['policy', 'reason']

/**
 * @param call the called method, for messages
 * @param known names of options
 * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function limitersOf(
  limiters: readonly Limiter[],
  options: ActionOptions,
  call: string,
  known: readonly string[] = ['policy'],
): readonly Limiter[] {
  // A name in place of the options would mean all policies.
  if (typeof options !== 'object' || options === null) throw invalidOption('options', options, 'an object, such as { policy: "login" }')
  checkNames(call, options, known)
  const { policy: name, reason } = options
  if (reason !== undefined && typeof reason !== 'string') throw invalidOption('reason', reason, 'a text')
  if (name === undefined) return limiters
  const limiter = limiters.find(({ policy }) => policy.name === name)
  if (limiter === undefined) {
    throw unknownPolicy(
      name,
      limiters.map(({ policy }) => policy.name),
    )
  }
  return [limiter]
}

/**
 * A key as it is counted, in its own memory: a report to the store may have to wait for long.
 *
 * @throws WeirError `WEIR_INVALID_KEY`
 */
export function countedKey(key: unknown): string {
  if (typeof key === 'string') return copied(boundedOnce(key))
  // The key may be the promise of an async key function of `wrap` or `limitedFetch`.
  hush(key)
  throw invalidKey(key)
}
