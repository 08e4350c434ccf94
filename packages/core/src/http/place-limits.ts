import { sameRule } from '../decide/alike.ts'
import { isPolicyOption, parsePolicy } from '../decide/check-policy.ts'
import { expandPlans, type PlannedPolicyOptions } from '../decide/plans.ts'
import type { AnyPolicyOptions, PolicyOptions, SlotPolicyOptions } from '../decide/policy.ts'
import type { KeyOption } from '../decide/request-options.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import type { ThrottlerOptions } from '../throttler/options.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { type AdapterOptions, type SplitOptions, splitOptions, type ThrottleInput } from './adapter-options.ts'
import { Guard } from './guard.ts'
import type { RequestReader } from './request/reader.ts'

/**
 * The limits of one place of an application, a route or a class of handlers. They replace the limits of the whole. Without `policies`, the
 * place inherits options of the only policy of the whole (but not its `name` and `match`) that it doesn't set, as far as they fit with the
 * ones it sets. Policies in a list inherit the `key` of that policy. The store is that of the whole.
 */
export type PlaceOptions<Req, Args extends readonly unknown[]> =
  | (AdapterOptions<Req, Args> & Partial<PolicyOptions<Req> & PlannedLimits<Req>>)
  | (AdapterOptions<Req, Args> & SlotPolicyOptions<Req> & Partial<PlannedLimits<Req>>)
  | (AdapterOptions<Req, Args> & Pick<ThrottlerOptions<Req>, 'policies'>)
  | (AdapterOptions<Req, Args> & {
      /** Uses a throttler made by `createThrottler` for this place alone. */
      readonly throttler: Throttler<string, Req>
    })

/** Limits by plan, in place of `limit`. */
type PlannedLimits<Req> = Pick<PlannedPolicyOptions<Req>, 'plans' | 'plan'>

/** The limits of one place, completed with the options of the whole. */
export interface PlaceLimit<Req, Args extends readonly unknown[]> {
  readonly split: SplitOptions<Req, Args, string>
  guard: Guard<Req, Args> | undefined
}

/** The words for a place and the whole in messages, e.g. `Route` and `the plugin`. */
export interface PlaceWords {
  readonly place: string
  readonly whole: string
  /** A sentence that explains how to make a place without limits. */
  readonly none: string
}

/**
 * Limits of single routes, for adapters whose frameworks support options of a route. Such limits are further policies of the one throttler,
 * each for its place only. They share its store, its events and its dashboard.
 */
export class PlaceLimits<Req, Args extends readonly unknown[]> {
  /** Guards the places without limits of their own. */
  readonly general: Guard<Req, Args>
  readonly #whole: SplitOptions<Req, Args, string>
  readonly #reader: RequestReader<Req>
  readonly #words: PlaceWords
  readonly #limits = new Map<object, Map<string, PlaceLimit<Req, Args>>>()
  readonly #policies = new Map<string, PolicyOptions<Req>>()
  #version = 0

  /** @throws WeirError for the same reasons as `createGuard` */
  constructor(input: ThrottleInput<Req, Args>, reader: RequestReader<Req>, words: PlaceWords) {
    this.#whole = splitOptions<Req, Args, string>(input, reader.options)
    this.#reader = reader
    this.#words = words
    this.general = new Guard(input, reader, (policy) => !this.#policies.has(policy))
  }

  get throttler(): Throttler<string, Req> {
    return this.general.throttler
  }

  /**
   * Adds the limits of a place. The same options at a place of the same name are added once, and so are equal policies of the same name.
   *
   * @param name the name of its policy if the options have none; it must be the same in all processes
   * @throws WeirError for the same reasons as `createThrottler`
   */
  add(options: PlaceOptions<Req, Args>, name: string): PlaceLimit<Req, Args> {
    const known = this.#limits.get(options)?.get(name)
    if (known !== undefined) return known
    const split = this.#complete(options, name)
    const limit: PlaceLimit<Req, Args> = { split, guard: undefined }
    if (split.throttler === undefined) {
      const policies = split.make.policies.filter((policy) => !this.#knows(policy))
      if (policies.length > 0) {
        // Checked together with all others. If it is rejected, nothing changes for the other places.
        this.throttler.update([...this.general.side.rules, ...this.#missing(), ...policies])
        this.#version = this.general.side.version
      }
      for (const policy of policies) this.#policies.set(policy.name as string, policy)
    }
    const limits = this.#limits.get(options) ?? new Map<string, PlaceLimit<Req, Args>>()
    this.#limits.set(options, limits.set(name, limit))
    return limit
  }

  /** Connects, and makes the guards of the places that have been added. */
  start(): void {
    for (const limits of this.#limits.values()) for (const limit of limits.values()) this.guard(limit)
    this.throttler.start()
  }

  /** The guard of a place. */
  guard(limit: PlaceLimit<Req, Args>): Guard<Req, Args> {
    const { own, throttler, make } = limit.split
    if (limit.guard !== undefined) return limit.guard
    if (throttler === undefined) this.#adopt()
    const names = new Set(make.policies.map(({ name }) => name))
    limit.guard = new Guard(
      { ...own, throttler: throttler ?? this.throttler },
      this.#reader,
      throttler === undefined ? (policy) => names.has(policy) : undefined,
    )
    return limit.guard
  }

  /** Adds policies of places again that an `update` of the application has removed. Call it for each request. */
  follow(): void {
    if (this.#version !== this.general.side.version) this.#adopt()
  }

  #adopt(): void {
    const missing = this.#missing()
    try {
      if (missing.length > 0) this.throttler.update([...this.general.side.rules, ...missing])
    } catch (error) {
      // Another throttler may have taken a name meanwhile. Requests must not fail for it.
      this.general.report('places', `${this.#words.place} limits that an update removed can't be added again`, error)
    }
    this.#version = this.general.side.version
  }

  /** The policies of places that an update has removed. */
  #missing(): readonly PolicyOptions<Req>[] {
    const present = new Set(this.throttler.policies.map(({ name }) => name))
    return [...this.#policies.values()].filter(({ name }) => !present.has(name as string))
  }

  /** Whether a policy equals one of another place, even if it is spelled differently. */
  #knows(policy: PolicyOptions<Req>): boolean {
    const known = this.#policies.get(policy.name as string)
    return known !== undefined && sameRule(policy, known, this.#whole.make.store !== undefined)
  }

  /** A place's options, completed with the ones of the whole. */
  #complete(options: PlaceOptions<Req, Args>, name: string): SplitOptions<Req, Args, string> {
    const { own, make, given, throttler } = this.#whole
    const place = options as Partial<PlaceRule<Req>>
    const levels = place.policies !== undefined || place.throttler !== undefined
    if (place.policies !== undefined && !(Array.isArray(place.policies) && place.policies.length > 0)) {
      throw invalidOption('policies', place.policies, 'a list of at least one policy', this.#words.none)
    }
    const base = given.length === 1 ? (given[0] as Rule<Req>) : undefined
    const said = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
    const split = splitOptions<Req, Args, string>(
      (levels
        ? withKey(options, place, base?.key)
        : { ...inherited(base, said, make.store !== undefined), name, ...said }) as ThrottleInput<Req, Args>,
      this.#reader.options,
    )
    if (split.throttler !== undefined) return { ...split, own: { ...inheritedOptions(own, split.own), ...split.own } }
    const { policies: listed, ...shared } = split.make
    const foreign = Object.keys(shared)[0]
    const { place: one, whole } = this.#words
    if (foreign !== undefined) {
      throw new WeirError(
        'WEIR_UNKNOWN_OPTION',
        `Option ${show(foreign)} can't be set for one ${one.toLowerCase()}: all limits of ${whole} share one throttler. Set it on ${whole}.`,
      )
    }
    if (throttler !== undefined) {
      throw new WeirError(
        'WEIR_MISSING_OPTION',
        `${one} ${name} has its own limits, but ${whole} uses a ready-made throttler. Add a "throttler" to the ${one.toLowerCase()}, or use "policies" and a "store" for ${whole}.`,
      )
    }
    // Checked here, so that messages name options as they are written at the place.
    for (const [at, policy] of listed.entries()) parsePolicy(policy, make.store !== undefined, listed.length > 1 ? `policies[${at}].` : '')
    const policies = listed.map((policy, at) => ({ ...policy, name: policy.name ?? `${name}#${at}` }))
    return { ...split, own: { ...inheritedOptions(own, split.own), ...split.own }, make: { ...make, policies } }
  }
}

/** A policy as it may be written, and as it may be written at a place. */
type Rule<Req> = Partial<Omit<PolicyOptions<Req>, 'algorithm'> & PlannedLimits<Req>> & Pick<AnyPolicyOptions<Req>, 'algorithm'>
type PlaceRule<Req> = Rule<Req> & { readonly policies: readonly unknown[]; readonly throttler: unknown }

/** A place's own list of policies. Policies without a key get the key of the whole's policy. */
function withKey<Req>(options: object, { policies }: Partial<PlaceRule<Req>>, key: KeyOption<Req> | undefined): object {
  if (policies === undefined || key === undefined) return options
  const without = (policy: unknown) => typeof policy === 'object' && policy !== null && (policy as Rule<Req>).key === undefined
  return { ...options, policies: policies.map((policy) => (without(policy) ? { ...(policy as Rule<Req>), key } : policy)) }
}

/** Options that tune a limit. If one doesn't fit with the place's own options, the default applies. */
const TUNING = ['spans', 'cooldown', 'failMode', 'storeTimeout', 'delay'] as const

/**
 * The options that a place inherits from the policy of the whole.
 *
 * @param shared whether there is a store
 */
function inherited<Req>(base: Rule<Req> | undefined, place: Rule<Req>, shared: boolean): Rule<Req> {
  if (base === undefined) return {}
  const rule: Record<string, unknown> = { ...base }
  const leave = (...options: readonly string[]): void => options.forEach((option) => void delete rule[option])
  leave('name', 'match', ...TUNING)
  // `limit` and `plans` replace each other.
  if (place.limit !== undefined) leave('plans', 'plan')
  if (place.plans !== undefined) leave('limit')
  if (typeof (place.limit ?? rule['limit']) !== 'function') leave('fallbackLimit')
  // Slots have no interval.
  if (place.algorithm?.slots !== undefined) leave('interval')
  if (place.interval !== undefined && base.algorithm?.slots !== undefined) leave('algorithm')
  const own = Object.fromEntries(
    Object.entries(place).filter(([option]) => isPolicyOption(option) || option === 'plans' || option === 'plan'),
  )
  for (const option of TUNING) {
    if (base[option] !== undefined && isRule({ ...rule, [option]: base[option], ...own }, shared)) rule[option] = base[option]
  }
  return rule as Rule<Req>
}

function isRule(rule: object, shared: boolean): boolean {
  try {
    for (const policy of expandPlans([rule as PolicyOptions<never>])) parsePolicy(policy, shared)
    return true
  } catch {
    return false
  }
}

/**
 * The options that a place inherits from the whole. The answer to a rejection is one choice. If the place sets any option of it, it
 * inherits none of them. It doesn't inherit `estimate`, whose costs are for the policies of the whole.
 */
function inheritedOptions<Req, Args extends readonly unknown[]>(
  whole: AdapterOptions<Req, Args>,
  place: AdapterOptions<Req, Args>,
): AdapterOptions<Req, Args> {
  const options: Record<string, unknown> = { ...whole }
  const leave = ['estimate', 'settle', 'ttl']
  const answers = ['handler', 'message', 'throwOnReject'] as const
  if (answers.some((option) => place[option] !== undefined)) leave.push(...answers)
  if (place.estimate !== undefined) leave.push('skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful')
  for (const option of leave) delete options[option]
  return options
}
