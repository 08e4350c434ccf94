import { isPlanMatch, type PlanGroup } from '../../decide/plans.ts'
import type { PolicyOptions, RequestPolicyOptions } from '../../decide/policy.ts'
import { isPathMatch, type PathPolicies } from '../../decide/request-options.ts'
import { keySources, matchOf } from '../../decide/request-rule.ts'
import { bounded } from '../../keys/key-text.ts'
import type { WeirError } from '../../report/errors.ts'
import { ask, CALLBACK_TIMEOUT, isThenable, type Patience } from '../../report/user-function.ts'
import { systemClock } from '../../time/clock.ts'
import { addressKeys } from './address.ts'
import { addressHeaderIn, part } from './key-source.ts'
import { COST, KEY, type LaterContext, LIMIT, MATCH, type PartOfKey, PLAN, type Reading, type Stage } from './later.ts'
import { LaterLimits } from './later-limits.ts'
import { ProxyWatch } from './proxy-watch.ts'
import { readLater } from './read-later.ts'
import type { RequestReader } from './reader.ts'
import { RequestFacts } from './request-facts.ts'
import type { PlanState, Rule } from './rule.ts'
import { RuleAnswers } from './rule-answers.ts'

/** Keys with a colon that are checked for each policy. The number is limited, because a check costs more than the search for a colon. */
const COLONS_WATCHED = 100

/** The request side of a policy: its key, the requests that it applies to, their costs and their limit. */
export type RequestRule<Req> = Pick<RequestPolicyOptions<Req>, 'name' | 'key' | 'match' | 'cost'> &
  Partial<Pick<PolicyOptions<Req>, 'limit'>>

/** Options for compiling rules. */
export interface RulesOptions {
  /** Bits of an IPv6 address that are kept. Default 64. */
  readonly ipv6Subnet?: number | undefined
  /** Distinguishes upper and lower case in route keys made from paths. Default false. */
  readonly caseSensitive?: boolean | undefined
  /** Receives each problem once, e.g. a key function that throws. `subject` is the policy's name. */
  readonly report: (error: WeirError, subject: string) => void
  /** The time that functions may take to answer. Default 1 s, by the clock of the process. */
  readonly patience?: Patience | undefined
}

/**
 * The request side of a throttler's policies, compiled for one framework. `evaluate` fills `keys` and `costs`. They are reused, so they are
 * valid for the last request only.
 */
export class Rules<Req> {
  /** The key for each policy, in their order. Undefined if the policy does not apply. */
  readonly keys: (string | undefined)[]
  /** The cost for each policy. */
  readonly costs: number[]
  /** The limit of the key for each policy with a limit function. Undefined if no policy has one. */
  readonly limits: (number | undefined)[] | undefined
  /** The indexes of the policies that apply, ascending. Only the first `applied` of them are valid. */
  readonly applying: number[]
  applied = 0
  readonly #rules: readonly Rule<Req>[]
  readonly #facts: RequestFacts<Req>
  /** The number of the current request. */
  #request = 0
  readonly #answers: RuleAnswers<Req>
  readonly #patience: Patience
  /** Whether some rule counts by route. */
  readonly #byRoute: boolean

  /** @param only the indexes of the rules that are used; default: all */
  constructor(rules: readonly RequestRule<Req>[], reader: RequestReader<Req>, options: RulesOptions, only?: readonly number[]) {
    const plans = new Map<PlanGroup, PlanState>()
    const used = rules.map((_, place) => only === undefined || only.includes(place))
    this.#rules = rules.map((rule) => compile(rule, plans))
    let index: PathPolicies | undefined
    const everywhere: number[] = []
    for (const [place, rule] of rules.entries()) {
      if (!used[place]) continue
      const match = matchOf(rule)
      if (!isPathMatch(match)) everywhere.push(place)
      else (index ??= match.index()).add(match.patterns, place)
    }
    const watch = new ProxyWatch(reader, options.report)
    this.#facts = new RequestFacts(reader, addressKeys(options.ipv6Subnet), watch, index, everywhere, options.caseSensitive === true)
    this.#answers = new RuleAnswers(options.report, new Set(this.#rules.map(({ name }) => name)))
    this.#patience = options.patience ?? { clock: systemClock, timeout: CALLBACK_TIMEOUT }
    this.#byRoute = this.#rules.some(({ sources }) => sources.includes('route'))
    this.keys = rules.map(() => undefined)
    this.applying = rules.map(() => 0)
    this.limits = this.#rules.some(({ limit }) => limit !== undefined) ? rules.map(() => undefined) : undefined
    this.costs = this.#rules.map((rule) => (typeof rule.cost === 'number' ? rule.cost : 1))
  }

  /**
   * Reads one request.
   *
   * @returns whether any policy applies. It is a promise only if a function answers later. Then only the promise's value contains the keys,
   * costs and limits
   */
  evaluate(request: Req): boolean | Promise<Reading | undefined> {
    const { keys, costs, applying } = this
    for (let i = 0; i < this.applied; i++) keys[applying[i] as number] = undefined
    this.applied = 0
    this.#request++
    const facts = this.#facts
    facts.begin(request)
    const candidates = facts.policies()
    for (let i = 0; i < candidates.length; i++) {
      const place = candidates[i] as number
      const rule = this.#rules[place] as Rule<Req>
      if (rule.plans !== undefined) {
        const plan = this.#plan(rule.plans, request)
        if (typeof plan !== 'string') return this.#later(request, i, PLAN, plan)
        if (plan !== rule.plan) continue
      }
      if (rule.when !== undefined) {
        const answer = ask(rule.when, request)
        if (isThenable(answer)) return this.#later(request, i, MATCH, answer)
        if (!this.#answers.match(rule, answer)) continue
      }
      // The policy is noted before its key is read. If a reader throws, the next request still clears all of this one.
      applying[this.applied++] = place
      const key = this.#key(rule, request)
      if (typeof key !== 'string') return this.#later(request, i, KEY, key)
      keys[place] = key
      if (typeof rule.cost === 'function') {
        const answer = ask(rule.cost, request)
        if (isThenable(answer)) return this.#later(request, i, COST, answer)
        const cost = this.#answers.cost(rule, answer)
        if (cost === undefined) {
          keys[place] = undefined
          this.applied--
          continue
        }
        costs[place] = cost
      }
      if (rule.limit !== undefined) {
        const answer = this.#limit(rule, key, request)
        if (answer !== undefined && typeof answer !== 'number') return this.#later(request, i, LIMIT, answer)
        ;(this.limits as (number | undefined)[])[place] = answer
      }
    }
    facts.end()
    return this.applied > 0
  }

  /** The key of a request, or its known part while a function has not answered. */
  #key(rule: Rule<Req>, request: Req): string | PartOfKey {
    const { length } = rule.sources
    const facts = this.#facts
    const first = this.#answers.source(rule, 0, request, facts)
    if (typeof first !== 'string') return { at: 0, before: '', answer: first }
    if (length === 1) return first
    let key = part(first)
    for (let i = 1; i < length; i++) {
      const value = this.#answers.source(rule, i, request, facts)
      if (typeof value !== 'string') return { at: i, before: `${key}|`, answer: value }
      key += `|${part(value)}`
    }
    return bounded(key)
  }

  /** The limit of a key, or the promise to wait for. Undefined if the policy's own limit applies. */
  #limit(rule: Rule<Req>, key: string, request: Req): number | undefined | object {
    const now = this.#patience.clock.monotonic()
    const known = rule.laterLimits?.find(key, now)
    if (known !== undefined) return known.answer
    const answer = ask(rule.limit as (request: Req) => unknown, request)
    if (!isThenable(answer)) return this.#answers.limit(rule, answer)
    rule.laterLimits?.wait(key, answer)
    return answer
  }

  /** The plan of a request, or the promise to wait for. */
  #plan(state: PlanState, request: Req): string | object {
    if (state.request === this.#request) return state.current
    const { group } = state
    state.request = this.#request
    state.current = group.smallest
    const answer = ask(group.of as (request: Req) => unknown, request)
    if (isThenable(answer)) return answer
    state.current = this.#answers.plan(state, answer)
    return state.current
  }

  /**
   * Continues a request that must wait. Its known values are copied, because other requests are read meanwhile.
   *
   * @param at the index of the candidate that waits
   * @param stage its function that has not answered
   */
  #later(request: Req, at: number, stage: Stage, waiting: object): Promise<Reading | undefined> {
    const facts = this.#facts.known(this.#byRoute)
    const candidates = this.#facts.policies().slice(at)
    this.#facts.end()
    const done = this.applying.slice(0, this.applied).filter((place) => place !== candidates[0])
    const reading: Reading = {
      // The key of the waiting policy is known only if its function is called after the key is read.
      keys: this.keys.map((key, place) => (done.includes(place) || (stage >= COST && place === candidates[0]) ? key : undefined)),
      costs: this.costs.slice(),
      limits: this.limits?.slice(),
      applying: done,
    }
    const plans = new Map<PlanState, string>()
    for (const { plans: state } of this.#rules) if (state?.request === this.#request) plans.set(state, state.current)
    const context: LaterContext<Req> = { rules: this.#rules, answers: this.#answers, request, facts, plans, patience: this.#patience }
    return readLater(context, reading, candidates, stage, waiting)
  }
}

function compile<Req>(rule: RequestRule<Req>, plans: Map<PlanGroup, PlanState>): Rule<Req> {
  const match = matchOf(rule)
  const sources = keySources(rule.key, 'key')
  return {
    name: rule.name ?? 'default',
    ...planOf(rule, plans),
    sources,
    when: typeof match === 'function' ? match : undefined,
    cost: rule.cost ?? 1,
    limit: typeof rule.limit === 'function' ? rule.limit : undefined,
    laterLimits: typeof rule.limit === 'function' ? new LaterLimits() : undefined,
    addressHeader: addressHeaderIn(sources),
    keyReported: false,
    rawReported: false,
    colonsWatched: COLONS_WATCHED,
    matchReported: false,
    costReported: false,
    limitReported: false,
  }
}

function planOf(rule: RequestRule<never>, plans: Map<PlanGroup, PlanState>): { plans: PlanState | undefined; plan: string } {
  if (!isPlanMatch(rule.match)) return { plans: undefined, plan: '' }
  const { group, plan } = rule.match
  let state = plans.get(group)
  if (state === undefined) plans.set(group, (state = { group, request: 0, current: group.smallest, reported: false }))
  return { plans: state, plan }
}
