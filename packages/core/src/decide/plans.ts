import { type IntervalOption, parseInterval } from '../options/interval.ts'
import { invalidOption, missingOption, WeirError } from '../report/errors.ts'
import type { Awaitable } from '../report/user-function.ts'
import type { AnyPolicyOptions, PolicyOptions, RequestPolicyOptions, RequestSlotPolicyOptions } from './policy.ts'
import type { MatchOption } from './request-options.ts'

/**
 * A policy whose limit depends on the caller's plan, out of a declared set. It becomes one policy for each plan, named
 * `<name>:<plan>`.
 *
 * @example
 * throttle({ key: header('x-api-key'), interval: '1m', plans: { free: 60, pro: 600 }, plan: (req) => req.user.plan })
 */
export type PlannedPolicyOptions<Req, Name extends string = string, Plan extends string = string> = (
  | Omit<RequestPolicyOptions<Req, Name>, 'limit' | 'fallbackLimit' | 'interval'>
  | Omit<RequestSlotPolicyOptions<Req, Name>, 'limit' | 'fallbackLimit' | 'interval'>
) & {
  /**
   * Sets a limit for each plan, in place of `limit`: `{ free: 60, pro: 600 }`. An adapter must read the requests.
   *
   * A plan may have an interval of its own. Each plan is counted by a policy named `<name>:<plan>`. Throws `WEIR_INVALID_OPTION` beside
   * `limit`, and `WEIR_MISSING_OPTION` without `plan`.
   *
   * @default none
   * @example
   * plans: { free: 60, pro: 600, partner: { limit: 10_000, interval: '1d' } }
   * @see `@weir/core/docs/guides/plans.md`
   */
  readonly plans: Readonly<Record<Plan, number | PlanLimit>>
  /**
   * Sets the interval of plans that have none of their own. At least 10 ms.
   *
   * @default none: each plan needs an interval of its own
   */
  readonly interval?: IntervalOption
  /**
   * Returns the plan of a request.
   *
   * It may return a promise. If it fails or returns a name that is not in `plans`, the plan with the smallest limit applies, with one
   * `warning`.
   *
   * @default required with `plans`
   */
  readonly plan: (request: Req) => Awaitable<NoInfer<Plan>>
}

/** The limit of a plan. */
export interface PlanLimit {
  /** Sets how many units each key of the plan may use per interval: a number from 1 to 2^53 - 1. */
  readonly limit: number
  /**
   * Sets the interval of this plan. At least 10 ms.
   *
   * @default the `interval` of the policy
   */
  readonly interval?: IntervalOption
}

/** The names of the policies after each plan became a policy, including policies without plans. */
export type PlannedName<Name extends string, Plan extends string> = [Plan] extends [never] ? Name : Name | `${Name}:${Plan}`

/** All plans of one policy. */
export interface PlanGroup {
  readonly policy: string
  readonly of: (request: never) => unknown
  readonly plans: readonly string[]
  /** The plan with the smallest limit. If their intervals differ, the plan that allows least over time. */
  readonly smallest: string
}

/** The `match` of the policy of one plan: the `match` of the whole policy, and the plan. */
export interface PlanMatch<Req> {
  readonly group: PlanGroup
  readonly plan: string
  readonly match: MatchOption<Req> | undefined
}

/** Whether a `match` belongs to one plan. */
export function isPlanMatch<Req>(match: unknown): match is PlanMatch<Req> {
  return typeof match === 'object' && match !== null && 'group' in match && 'plan' in match
}

/**
 * Replaces each policy with `plans` by one policy for each plan, named `<policy>:<plan>`. The set is declared, so each plan
 * has counts, headers and metrics of its own, and a client that changes its plan starts with a fresh count.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_MISSING_OPTION` for plans that can't be used
 */
export function expandPlans<Req>(policies: readonly (AnyPolicyOptions<Req> | PlannedPolicyOptions<Req>)[]): readonly PolicyOptions<Req>[] {
  if (!Array.isArray(policies) || !policies.some(isPlanned)) return policies as readonly PolicyOptions<Req>[]
  return (policies as readonly (PolicyOptions<Req> | PlannedPolicyOptions<Req>)[]).flatMap((policy, place) =>
    isPlanned(policy) ? expand(policy, policies.length > 1 ? `policies[${place}].` : '') : [policy],
  )
}

function isPlanned<Req>(policy: PolicyOptions<Req> | PlannedPolicyOptions<Req>): policy is PlannedPolicyOptions<Req> {
  if (typeof policy !== 'object' || policy === null) return false
  const { plans, plan } = policy as Partial<PlannedPolicyOptions<Req>>
  return plans !== undefined || plan !== undefined
}

function expand<Req>(policy: PlannedPolicyOptions<Req>, at: string): PolicyOptions<Req>[] {
  const { plans: limits, plan, match: matched, name = 'default', ...rest } = policy
  if (limits === undefined) {
    throw missingOption(`${at}plans`, 'Option "plan" needs it. Add the limit of each plan, e.g. plans: { free: 60, pro: 600 }.')
  }
  if ((rest as Partial<PolicyOptions<Req>>).limit !== undefined) {
    throw new WeirError('WEIR_INVALID_OPTION', `Use either "${at}limit" or "${at}plans" (one limit per plan), not both.`)
  }
  if (typeof limits !== 'object' || limits === null || Object.keys(limits).length === 0) {
    throw invalidOption(`${at}plans`, limits, 'an object with the limit of each plan, such as { free: 60, pro: 600 }')
  }
  if (plan === undefined) {
    throw missingOption(`${at}plan`, 'With "plans", add plan: (req) => "free".')
  }
  if (typeof plan !== 'function') throw invalidOption(`${at}plan`, plan, 'a function of the request')
  const plans = Object.keys(limits)
  const own = (one: string): PlanLimit => {
    const given: unknown = limits[one]
    if (typeof given !== 'object' || given === null) return { limit: given as number }
    const strange = Object.keys(given).find((name) => name !== 'limit' && name !== 'interval')
    if (strange === undefined) return given as PlanLimit
    throw invalidOption(`${at}plans.${one}`, given, 'a number, or { limit, interval }')
  }
  const pace = (one: string): number => {
    const { limit, interval = rest.interval } = own(one)
    return limit / (interval === undefined ? 1 : parseInterval(interval, `${at}interval`, 1).interval)
  }
  // Among plans with the same pace the first by name is the smallest, so that all processes choose the same one. The order of declaration
  // does not matter.
  const smallest = plans.toSorted().reduce((least, one) => (pace(one) < pace(least) ? one : least))
  const group: PlanGroup = { policy: name, of: plan, plans, smallest }
  return plans.map((one) => {
    const planMatch: PlanMatch<Req> = { group, plan: one, match: matched }
    // Only `Rules` reads it, and it supports this form.
    const match = planMatch as unknown as MatchOption<Req>
    return { ...rest, ...own(one), name: `${name}:${one}`, match } as PolicyOptions<Req>
  })
}
