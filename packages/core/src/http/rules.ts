import { invalidOption, show, WeirError } from '../errors.ts'
import { bounded, LONGEST_KEY } from '../key-text.ts'
import type { PolicyOptions } from '../policy.ts'
import { isCost, MOST_UNITS } from '../units.ts'
import { addressKeys } from './address.ts'
import { ALL_KEY, isRaw, keySources, own, part, standIn } from './key-source.ts'
import { PathIndex } from './path-index.ts'
import { isPlanMatch, type PlanGroup, unknownPlan } from './plans.ts'
import type { KeySource, MatchOption, RequestReader } from './reader.ts'
import { RequestFacts } from './request-facts.ts'

/** The request side of a policy: what it counts by, which requests it applies to, and what they cost. */
export type RequestRule<Req> = Pick<PolicyOptions<Req>, 'name' | 'key' | 'match' | 'cost'>

/** How rules are compiled. */
export interface RulesOptions {
  /** Bits of an IPv6 address that are kept. Default 64. */
  readonly ipv6Subnet?: number | undefined
  /** Tell paths apart by case, in route keys made from paths. Default false. */
  readonly caseSensitive?: boolean | undefined
  /** Gets each cause of trouble once, e.g. a key function that throws; `subject` is the policy's name. */
  readonly report: (error: WeirError, subject: string) => void
}

/** The plan of the request at hand, asked once for all policies of a group. */
interface PlanState {
  readonly group: PlanGroup
  /** The request that `current` is of, by its number. */
  request: number
  current: string
  reported: boolean
}

interface Rule<Req> {
  readonly name: string
  /** For a policy that stands for one plan: the others' common state, and which plan. */
  readonly plans: PlanState | undefined
  readonly plan: string
  readonly sources: readonly KeySource<Req>[]
  readonly when: ((request: Req) => boolean) | undefined
  readonly cost: number | ((request: Req) => number)
  keyReported: boolean
  rawReported: boolean
  matchReported: boolean
  costReported: boolean
}

/**
 * The request side of a throttler's policies, compiled for one framework. `evaluate` fills `keys` and `costs`, which are
 * reused: they hold for the last request only.
 */
export class Rules<Req> {
  /** The key for each policy, in their order; undefined where the policy does not apply. */
  readonly keys: (string | undefined)[]
  /** The cost for each policy. */
  readonly costs: number[]
  /** The places of the policies that apply, ascending; the first `applied` of them hold. */
  readonly applying: number[]
  applied = 0
  readonly #rules: readonly Rule<Req>[]
  readonly #facts: RequestFacts<Req>
  readonly #reader: RequestReader<Req>
  /** Numbers the requests. */
  #request = 0
  readonly #report: (error: WeirError, subject: string) => void

  /** @param only the places of the rules that are used; default: all */
  constructor(rules: readonly RequestRule<Req>[], reader: RequestReader<Req>, options: RulesOptions, only?: readonly number[]) {
    const index = new PathIndex()
    const unused = new PathIndex()
    const plans = new Map<PlanGroup, PlanState>()
    const used = rules.map((_, place) => only === undefined || only.includes(place))
    this.#rules = rules.map((rule, place) =>
      compile(rule, place, used[place] ? index : unused, plans, rules.length > 1 ? `policies[${place}].` : ''),
    )
    const everywhere = rules.flatMap((rule, place) => (used[place] && patternsOf(rule) === undefined ? [place] : []))
    this.#facts = new RequestFacts(reader, addressKeys(options.ipv6Subnet), index, everywhere, options.caseSensitive === true)
    this.#report = options.report
    this.#reader = reader
    this.keys = rules.map(() => undefined)
    this.applying = rules.map(() => 0)
    this.costs = this.#rules.map((rule) => (typeof rule.cost === 'number' ? rule.cost : 1))
  }

  /**
   * Reads one request.
   *
   * @returns whether any policy applies
   */
  evaluate(request: Req): boolean {
    const { keys, costs, applying } = this
    for (let i = 0; i < this.applied; i++) keys[applying[i] as number] = undefined
    this.applied = 0
    if (this.#request++ === 0) this.#checkProxy(request)
    const facts = this.#facts
    facts.begin(request)
    const candidates = facts.policies()
    for (let i = 0; i < candidates.length; i++) {
      const place = candidates[i] as number
      const rule = this.#rules[place] as Rule<Req>
      if (rule.plans !== undefined && this.#plan(rule.plans, request) !== rule.plan) continue
      if (rule.when !== undefined && !this.#applies(rule, request)) continue
      // Noted first: should a reader throw, nothing of this request is left to the next.
      applying[this.applied++] = place
      keys[place] = this.#key(rule, request)
      if (typeof rule.cost === 'function') costs[place] = this.#cost(rule, request)
    }
    facts.end()
    return this.applied > 0
  }

  #checkProxy(request: Req): void {
    const byAddress = this.#rules.some(({ sources }) => sources.some((source) => source !== 'route' && source !== 'all'))
    const setting = byAddress ? this.#reader.forgeable?.(request) : undefined
    if (setting === undefined) return
    const message = `Clients can choose the address that they are counted by: ${setting}.`
    this.#report(new WeirError('WEIR_TRUST_PROXY', message), 'proxy')
  }

  #key(rule: Rule<Req>, request: Req): string {
    const { length } = rule.sources
    if (length === 1) return this.#source(rule, 0, request)
    let key = part(this.#source(rule, 0, request))
    for (let i = 1; i < length; i++) key += `|${part(this.#source(rule, i, request))}`
    return bounded(key)
  }

  #source(rule: Rule<Req>, at: number, request: Req): string {
    const source = rule.sources[at] as KeySource<Req>
    if (source === 'route') return this.#facts.route()
    if (source === 'ip') return this.#facts.address()
    if (source === 'all') return ALL_KEY
    // A client without the header is no mistake of the host's, so it is not reported.
    if (typeof source === 'object') {
      const value = this.#facts.header(source.header)
      return value ? own(value) : standIn(this.#facts.address())
    }
    let problem: string
    try {
      const value: unknown = source(request)
      if (typeof value === 'string' && value !== '') {
        if (!rule.rawReported && isRaw(value)) this.#warnRaw(rule)
        return own(value)
      }
      if ((typeof value === 'number' && !Number.isNaN(value)) || typeof value === 'bigint') return String(value)
      problem = isPromise(value)
        ? 'returned a promise. Keys are read synchronously: authenticate in a middleware before Weir (in Fastify also: hook: "preHandler") and read the result in the key function'
        : value === undefined || value === null
          ? `returned ${show(value)}. It must return a string or a number for every request; what authentication finds out is there only if it runs before Weir (in Fastify also: hook: "preHandler")`
          : `returned ${show(value)}. It must return a string or a number for every request`
    } catch (error) {
      problem = `threw ${show(error instanceof Error ? error.message : error)}`
    }
    if (!rule.keyReported) {
      rule.keyReported = true
      this.#report(
        new WeirError(
          'WEIR_INVALID_KEY',
          `The key function of policy ${show(rule.name)} ${problem}. Such requests are counted by their address.`,
        ),
        rule.name,
      )
    }
    return standIn(this.#facts.address())
  }

  #warnRaw(rule: Rule<Req>): void {
    rule.rawReported = true
    const message = `The key function of policy ${show(rule.name)} returned what a client can vary at will: a URL with its query, or more than ${LONGEST_KEY} characters. Each spelling has a limit of its own. Use "route", or return what names the client.`
    this.#report(new WeirError('WEIR_RAW_KEY', message), rule.name)
  }

  #applies(rule: Rule<Req>, request: Req): boolean {
    let problem: string
    try {
      const answer: unknown = (rule.when as (request: Req) => unknown)(request)
      if (!isPromise(answer)) return Boolean(answer)
      problem = 'returned a promise; it must answer at once'
    } catch (error) {
      problem = `threw ${show(error instanceof Error ? error.message : error)}`
    }
    if (!rule.matchReported) {
      rule.matchReported = true
      this.#report(
        new WeirError(
          'WEIR_REQUEST_FUNCTION',
          `The match function of policy ${show(rule.name)} ${problem}. The policy applies to such requests.`,
        ),
        rule.name,
      )
    }
    return true
  }

  #plan(state: PlanState, request: Req): string {
    if (state.request === this.#request) return state.current
    const { group } = state
    state.request = this.#request
    state.current = group.smallest
    let problem: string
    try {
      const answer: unknown = (group.of as (request: Req) => unknown)(request)
      if (typeof answer === 'string' && group.plans.includes(answer)) {
        state.current = answer
        return answer
      }
      problem = isPromise(answer) ? 'returned a promise; it must answer at once' : unknownPlan(group, answer)
    } catch (error) {
      problem = `threw ${show(error instanceof Error ? error.message : error)}`
    }
    if (!state.reported) {
      state.reported = true
      this.#report(
        new WeirError(
          'WEIR_REQUEST_FUNCTION',
          `The plan function of policy ${show(group.policy)} ${problem}. Such requests have the plan ${show(group.smallest)}.`,
        ),
        group.policy,
      )
    }
    return group.smallest
  }

  #cost(rule: Rule<Req>, request: Req): number {
    let problem: string
    try {
      const answer: unknown = (rule.cost as (request: Req) => unknown)(request)
      if (isCost(answer)) return answer
      problem = `returned ${isPromise(answer) ? 'a promise' : show(answer)}; it must return a finite number > 0`
    } catch (error) {
      problem = `threw ${show(error instanceof Error ? error.message : error)}`
    }
    if (!rule.costReported) {
      rule.costReported = true
      this.#report(
        new WeirError('WEIR_INVALID_COST', `The cost function of policy ${show(rule.name)} ${problem}. Such requests cost 1.`),
        rule.name,
      )
    }
    return 1
  }
}

/** Whether a value is a promise; if so, its failure is taken care of, so that it can't end the process. */
export function isPromise(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || typeof (value as { then?: unknown }).then !== 'function') return false
  Promise.resolve(value).catch(() => {})
  return true
}

/**
 * Checks the request side of one policy: `key`, `match` and `cost`.
 *
 * @param at what stands before the option's name in messages, e.g. `'policies[2].'`
 * @throws WeirError `WEIR_INVALID_OPTION`, naming the option, what was given and what is allowed
 */
export function checkRequestRule(rule: RequestRule<never>, at = ''): void {
  compile(rule, 0, new PathIndex(), new Map(), at)
}

function compile<Req>(rule: RequestRule<Req>, place: number, index: PathIndex, plans: Map<PlanGroup, PlanState>, at: string): Rule<Req> {
  const { cost = 1 } = rule
  const match = matchOf(rule)
  const patterns = patternsOf(rule)
  if (match !== undefined && typeof match !== 'function') {
    if (patterns === undefined || patterns.length === 0 || patterns.some((pattern) => typeof pattern !== 'string')) {
      throw invalidOption(`${at}match`, match, 'a path pattern such as "POST /api/:id", a list of them, or a function of the request')
    }
    for (const pattern of patterns) index.add(pattern, place, `${at}match`)
  }
  if (typeof cost !== 'function' && !(isCost(cost) && cost <= MOST_UNITS)) {
    throw invalidOption(`${at}cost`, cost, `a number > 0 and at most ${MOST_UNITS}, or a function of the request`)
  }
  return {
    name: rule.name ?? 'default',
    ...planOf(rule, plans),
    sources: keySources(rule.key, `${at}key`),
    when: typeof match === 'function' ? match : undefined,
    cost,
    keyReported: false,
    rawReported: false,
    matchReported: false,
    costReported: false,
  }
}

function planOf(rule: RequestRule<never>, plans: Map<PlanGroup, PlanState>): { plans: PlanState | undefined; plan: string } {
  if (!isPlanMatch(rule.match)) return { plans: undefined, plan: '' }
  const { group, plan } = rule.match
  let state = plans.get(group)
  if (state === undefined) plans.set(group, (state = { group, request: 0, current: group.smallest, reported: false }))
  return { plans: state, plan }
}

function matchOf<Req>(rule: RequestRule<Req>): MatchOption<Req> | undefined {
  return isPlanMatch<Req>(rule.match) ? rule.match.match : rule.match
}

function patternsOf(rule: RequestRule<never>): readonly string[] | undefined {
  const match = matchOf(rule)
  if (typeof match === 'string') return [match]
  return Array.isArray(match) ? match : undefined
}
