import { bounded, boundedOnce } from '../keys/key-text.ts'
import { isCost } from '../keys/units.ts'
import { closedError, invalidKey, show, WeirError } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import type { Requests } from '../report/requests.ts'
import { type Clock, keptAlive } from '../time/clock.ts'
import type { Asking, AskingHost, Keys, Limits, Opening } from './asking.ts'
import { ByGates } from './by-gates.ts'
import { type Costs, isByName, type PlacedCosts, placed } from './costs.ts'
import { decideKeyed, decideOne } from './decide-one.ts'
import { type Decision, NO_POLICY } from './decision.ts'
import { GivenLimits } from './given-limits.ts'
import { combined, MOST_LEVELS } from './levels.ts'
import type { Limiter } from './limiter.ts'
import { OneByOne } from './one-by-one.ts'
import { peekOne } from './peek.ts'
import { ALL_KEY, type PolicyOptions } from './policy.ts'

/** The parts of the throttler that the request path needs. */
export interface RequestPathHost {
  readonly clock: Clock
  readonly closed: boolean
  /** Counts requests. */
  readonly requests: Requests
  /** Makes decisions that may wait for the store. Absent without one. */
  readonly asking?: ((host: AskingHost) => Asking) | undefined
  /** Brings a limiter to the running interval. Starts the throttler before its first decision, and throws after it was closed. */
  roll(limiter: Limiter, now: number): void
  warn(error: WeirError, subject?: string): void
}

/** Options of `check` for one request. */
export interface CheckOptions<Name extends string = string> {
  /**
   * Sets how many units this request uses: a finite number > 0, or one for each policy by name. Policies without one are then not
   * counted. A bad cost, even `Infinity`, counts as 1, with one `warning`. Throws `WEIR_UNKNOWN_POLICY` for another name.
   *
   * @default `cost` of the policy if it is a number, otherwise 1
   * @example
   * throttler.check('user-1', { cost: 5 })
   * throttler.check('user-1', { cost: { requests: 1, tokens: 900 } })
   * @see `@weir/core/docs/guides/costs.md`
   */
  readonly cost?: number | Costs<Name>
  /**
   * Sets the limit of this key for this call, in every policy: 0 rejects, `Infinity` allows, any other value is at least 1. All calls share
   * one count, so a key that is full for a limit of 10 has capacity for 20. A bad limit counts as none, with one `warning`.
   *
   * A cooldown lasts to its end, and limits of single keys that `update` sets take precedence.
   *
   * @default `limit` of the policy
   */
  readonly limit?: number | undefined
}

/** The options of a call, in one form. */
export interface Asks {
  readonly cost?: number | Costs | undefined
  readonly limit?: number | undefined
}

/**
 * Whether a call has options for its request. Otherwise it has a cost, or nothing. It allocates nothing if the options are valid, because
 * whole applications call it for each request.
 *
 * @throws WeirError `WEIR_UNKNOWN_OPTION`
 */
export function hasOptions(asked: number | Asks | undefined): asked is Asks {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) return false
  for (const option in asked) {
    if (option === 'cost' || option === 'limit' || !Object.hasOwn(asked, option)) continue
    checkNames('check()', asked, ['cost', 'limit'], (name) => (OF_ACQUIRE.includes(name) ? 'It is an option of acquire().' : undefined))
  }
  return true
}

const OF_ACQUIRE = ['timeout', 'signal', 'priority']

/** Decides requests by their keys and costs, with the limiters of all policies that apply. Counts them. */
export class RequestPath<Name extends string> {
  protected readonly host: RequestPathHost
  protected readonly clock: Clock
  protected readonly requests: Requests
  readonly #asking: Asking | undefined
  #limiters: readonly Limiter[] = []
  // Not `#`, because a private name needs more bytecode, and the calls of the request path share one bytecode budget.
  /** The only policy's limiter, unless all requests share one key or some key has a limit of its own. */
  protected single: Limiter | undefined
  /** The only policy's cost. */
  protected fixedCost = 1
  /** Whether some key has a limit of its own, or may. */
  #limited = false
  /** The only policy's limiter if single keys have limits that don't come from requests. */
  #keyed: Limiter | undefined
  /** Whether some policy may make a request wait for the store: for units, or for its decision. */
  waits = false
  /** Whether some policy delays requests instead of rejecting them. */
  delays = false
  /** Whether some policies are candidates. */
  #judges = false
  /** The indexes of all policies. */
  #places: readonly number[] = []
  /** For each policy, whether all requests share one limiter, and the cost of a request without its own. */
  #shared: readonly boolean[] = []
  #costs: readonly number[] = []
  #gates = new ByGates([], [], [])
  readonly #oneByOne: OneByOne
  readonly #limits: GivenLimits

  constructor(host: RequestPathHost) {
    this.host = host
    this.clock = host.clock
    this.requests = host.requests
    this.#oneByOne = new OneByOne(host, (cost, index) => this.#costOf(cost, index))
    this.#limits = new GivenLimits((error, subject) => host.warn(error, subject))
    const self = this
    this.#asking = host.asking?.({
      clock: host.clock,
      get limiters() {
        return self.#limiters
      },
      roll: (limiter, at) => host.roll(limiter, at),
      costOf: (cost, index) => this.#costOf(cost, index),
      noteLimits: (keys) => {
        const again = this.#limits.note(keys)
        return () => {
          if (again()) this.findLimited()
        }
      },
      giveAgain: (limiter, key, limit) => {
        if (this.#limits.giveAgain(limiter, key, limit)) this.findLimited()
      },
      decide: (keys, costs, count, places, applied) => this.#decideAll(keys, costs, count, places, applied),
    })
  }

  /** Adopts other rules, with their limiters in the same order. */
  adopt(rules: readonly PolicyOptions<never>[], limiters: readonly Limiter[]): void {
    this.#limiters = limiters
    const waits = limiters.find(({ policy }) => mayWait(policy) || delays(policy))
    // Sets own methods on this object, so that other throttlers need no check whether they may decide at once.
    if (waits !== undefined) this.check = this.decide = this.checkAt = () => mustWait(waits)
    else for (const method of ['check', 'decide', 'checkAt']) Reflect.deleteProperty(this, method)
    this.#places = limiters.map((_, place) => place)
    this.waits = limiters.some(({ policy }) => policy.storeTimeout > 0)
    this.delays = limiters.some(({ policy }) => delays(policy))
    this.#judges = limiters.some(({ policy }) => policy.candidate)
    this.#shared = rules.map(({ key }) => key === ALL_KEY)
    this.#costs = rules.map(({ cost }) => (typeof cost === 'number' ? cost : 1))
    this.fixedCost = this.#costs[0] ?? 1
    this.#gates = new ByGates(limiters, this.#shared, this.#costs)
    this.#oneByOne.adopt(limiters, this.#shared)
    this.#limits.adopt(limiters, this.#shared)
    this.findLimited()
  }

  /** Implements the throttler's `check`. */
  check(key: string, asked?: number | CheckOptions<Name>): Decision<Name> {
    const limiter = this.single
    // 256 is `LONGEST_KEY`. Literals replace imported constants, as in `GatedMeter`.
    if (limiter === undefined || asked !== undefined || typeof key !== 'string' || key.length > 256) return this.#checkEach(key, asked)
    const now = this.clock.monotonic()
    if (now >= limiter.meter.rollAt) this.host.roll(limiter, now)
    return decideOne(limiter, key, this.fixedCost, now, this.requests) as Decision<Name>
  }

  /** Counts a decided request. */
  tally(decision: Decision): void {
    const { allowed, reason } = decision
    if (reason !== 'none') this.requests.count(allowed, reason)
  }

  /** Implements the throttler's `peek`. */
  peek(given: string, asked?: number | Asks): Decision<Name> {
    checkKey(given)
    const key = boundedOnce(given)
    const { cost, limit } = hasOptions(asked) ? asked : { cost: asked, limit: undefined }
    const own = this.#limits.checked(limit)
    const { costs, places } = this.placed(cost)
    const units = (place: number) => (costs[place] === 0 ? 0 : this.#costOf(costs[place], place))
    const keyOf = (place: number) => (this.#shared[place] === true ? ALL_KEY : key)
    return this.#peekAt(places, keyOf, units, () => own)
  }

  /** Implements the throttler's `peekEach`. */
  peekEach(keys: Keys, costs: readonly number[], applying: readonly number[], limits: Limits | undefined): Decision<Name> {
    const keyOf = (place: number) => boundedOnce(keys[place] as string)
    const limitOf = (place: number) => this.#limits.checked(limits?.[place])
    return this.#peekAt(applying, keyOf, (place) => this.#costOf(costs[place], place), limitOf)
  }

  /** Implements the throttler's `decide`. */
  decide(keys: Keys, costs: readonly number[], applying?: readonly number[], applied?: number, limits?: Limits): Decision<Name> {
    if (this.#limited || limits !== undefined) this.limitEach(keys, limits)
    if (applied === 1 && applying !== undefined && !this.#judges) {
      const place = applying[0] as number
      const key = keys[place]
      const limiter = this.#limiters[place]
      if (key !== undefined && limiter !== undefined && !limiter.limited) {
        const now = this.clock.monotonic()
        if (now >= limiter.meter.rollAt) this.host.roll(limiter, now)
        return decideOne(limiter, key, this.#costOf(costs[place], place), now, this.requests) as Decision<Name>
      }
    }
    return this.#tallied(this.#decideAll(keys, costs, true, applying, applied))
  }

  /** Implements the throttler's `checkAsync`. */
  checkAsync(given: string, asked?: number | CheckOptions<Name>): Promise<Decision<Name>> {
    // Not an async function, which would need another promise and more turns of the microtask queue.
    try {
      const decision = this.take(given, asked)
      if (decision instanceof Promise) return decision.then((decided) => this.#tallied(decided))
      return Promise.resolve(this.#tallied(decision))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Does the same as `checkAsync`, but returns a promise only if the request has to wait for the store, and does not count the request. */
  take(given: string, asked?: number | Asks): Decision<Name> | Promise<Decision<Name>> {
    checkKey(given)
    const key = bounded(given)
    const by = this.#limitTo(key, asked)
    return this.decideAsync(this.keysOf(key), by.costs, by.places, by.places.length)
  }

  /** As `take`, by the policies of these indexes, and opens a reservation at the store. */
  takeAt(given: string, { costs, places }: PlacedCosts, opens: Opening | undefined): Decision<Name> | Promise<Decision<Name>> {
    checkKey(given)
    const key = bounded(given)
    this.limitKey(key, undefined)
    return this.decideAsync(this.keysOf(key), costs, places, places.length, undefined, opens)
  }

  /** The key that each policy counts. */
  keysOf(key: string): Keys {
    return this.#shared.map((shared) => (shared ? ALL_KEY : key))
  }

  /** As `check`, by the policies of these indexes. */
  checkAt(given: string, { costs, places }: PlacedCosts, now: number): Decision<Name> {
    checkKey(given)
    const key = bounded(given)
    if (this.#limited) this.limitKey(key, undefined)
    return this.#tallied(this.#decideAll(key, costs, true, places, places.length, now))
  }

  /** The decision that `decide` would make by the counts of this process. It counts nothing, not even a rejection. */
  look(keys: Keys, costs: readonly number[], applying?: readonly number[], applied?: number, limits?: Limits): Decision<Name> {
    if (this.#limited || limits !== undefined) this.limitEach(keys, limits)
    return this.#decideAll(keys, costs, false, applying, applied)
  }

  /** Implements the throttler's `decideAsync` without counting the request, because it may be a part of a delayed request. */
  decideAsync(
    keys: Keys,
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
    limits?: Limits,
    opens?: Opening,
  ): Decision<Name> | Promise<Decision<Name>> {
    if (limits !== undefined) this.limitEach(keys, limits)
    if (this.waits && this.#asking !== undefined) {
      let places = applying ?? this.#places
      let many = applied ?? places.length
      if (this.#judges) {
        const isNext = (place: number) => this.#limiters[place]?.policy.candidate === true
        const all = places.slice(0, many)
        const next = all.filter(isNext)
        this.#oneByOne.decide(keys, costs, true, next, next.length, this.clock.monotonic())
        places = all.filter((place) => !isNext(place))
        many = places.length
      }
      const decision = this.#asking.decide(keys, costs, places, many, opens) as Decision<Name> | Promise<Decision<Name>>
      return decision instanceof Promise ? keptAlive(this.clock, decision) : decision
    }
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  #checkEach(given: string, asked: number | CheckOptions<Name> | undefined): Decision<Name> {
    checkKey(given)
    const key = bounded(given)
    const limiter = this.single
    if (limiter !== undefined && typeof asked !== 'object') {
      const now = this.clock.monotonic()
      if (now >= limiter.meter.rollAt) this.host.roll(limiter, now)
      return decideOne(limiter, key, asked === undefined ? this.fixedCost : this.#costOf(asked, 0), now, this.requests) as Decision<Name>
    }
    const keyed = this.#keyed
    if (keyed !== undefined && typeof asked !== 'object') {
      const now = this.clock.monotonic()
      if (now >= keyed.meter.rollAt) this.host.roll(keyed, now)
      return this.#tallied(decideKeyed(keyed, key, asked === undefined ? this.fixedCost : this.#costOf(asked, 0), now) as Decision<Name>)
    }
    if (asked === undefined && !this.#limited) return this.#tallied(this.#decideAll(key, this.#costs, true))
    const by = this.#limitTo(key, asked)
    return this.#tallied(this.#decideAll(key, by.costs, true, by.places))
  }

  /** Sets the requested limit of a key, and returns the costs. */
  #limitTo(key: string, asked: number | Asks | undefined): PlacedCosts {
    const { cost, limit } = hasOptions(asked) ? asked : { cost: asked, limit: undefined }
    const by = this.placed(cost)
    this.limitKey(key, limit)
    return by
  }

  /** Sets the limit of a key from a request. Without one, each policy's own limit applies. */
  limitKey(key: string, limit: number | undefined): void {
    if (this.host.closed) throw closedError()
    if (this.#limits.giveAll(key, limit)) this.findLimited()
  }

  /** Does the same as `limitKey`, for a request with a key for each policy. */
  limitEach(keys: Keys, limits: Limits | undefined): void {
    if (this.host.closed) throw closedError()
    if (this.#limits.giveEach(keys, limits)) this.findLimited()
  }

  /** Does the same as `findLimited` after limits of keys may have ended without a request. */
  refresh(): void {
    if (this.#limited) this.findLimited()
  }

  /** Finds out whether some key has its own limit. */
  findLimited(): void {
    this.#limited = this.#limiters.some(({ limited, overridden }) => limited || overridden)
    const only = this.#limiters.length > 1 || this.#shared[0] === true ? undefined : this.#limiters[0]
    this.single = this.#limited ? undefined : only
    this.#keyed = this.#limited && !this.#limits.any ? only : undefined
  }

  /** The cost for each policy: the passed one, or the policy's own. */
  placed(cost: number | Costs | undefined): PlacedCosts {
    if (cost === undefined) return { costs: this.#costs, places: this.#places }
    const by = isByName(cost) ? placed(cost, this.#limiters, this.#places) : undefined
    // A cost without any policy is a mistake, which must not let requests pass uncounted.
    if (by !== undefined && by.places.length > 0) return by
    return { costs: this.#costs.map(() => cost as number), places: this.#places }
  }

  /**
   * @param keys a key for each policy, or one for all of them
   * @param places indexes of the policies that apply. The first `applied` of them are used
   */
  #decideAll(
    keys: string | Keys,
    costs: readonly number[],
    count: boolean,
    places: readonly number[] = this.#places,
    applied: number = places.length,
    now: number = this.clock.monotonic(),
  ): Decision<Name> {
    const decided =
      count && !this.#limited && !this.#judges && applied > 1 && applied <= MOST_LEVELS
        ? this.#gates.decide(keys, costs, places, applied, now)
        : undefined
    return (decided ?? this.#oneByOne.decide(keys, costs, count, places, applied, now)) as Decision<Name>
  }

  #tallied(decision: Decision<Name>): Decision<Name> {
    this.tally(decision)
    return decision
  }

  #peekAt(
    places: readonly number[],
    keyOf: (place: number) => string,
    unitsOf: (place: number) => number,
    limitOf: (place: number) => number | undefined,
  ): Decision<Name> {
    const now = this.clock.monotonic()
    const parts = places.flatMap((place) => {
      const limiter = this.#limiters[place]
      if (limiter === undefined || limiter.policy.candidate) return []
      if (now >= limiter.meter.rollAt) this.host.roll(limiter, now)
      return peekOne(limiter, keyOf(place), unitsOf(place), limitOf(place), now)
    })
    return (parts.length === 0 ? NO_POLICY : combined(parts)) as Decision<Name>
  }

  #costOf(cost: number | undefined, index: number): number {
    if (isCost(cost)) return cost
    this.host.warn(
      new WeirError('WEIR_WARN_INVALID_COST', `Option "cost" of a request is ${show(cost)}, which counts as 1. Use a finite number > 0.`),
      this.#limiters[index]?.policy.name,
    )
    return 1
  }
}

function mustWait({ policy }: Limiter): never {
  const { name, coordination } = policy
  const why = mayWait(policy) ? `has coordination "${coordination}", so a request may wait for the store` : 'may delay a request'
  throw new WeirError('WEIR_ASYNC_POLICY', `Policy ${show(name)} ${why}. Use await throttler.checkAsync(key).`)
}

/** Whether requests may be delayed. */
function delays({ delay, dryRun }: Limiter['policy']): boolean {
  return delay !== 0 && !dryRun
}

/** Whether a request may have to wait for the store. */
function mayWait({ coordination, storeTimeout, dryRun }: Limiter['policy']): boolean {
  return storeTimeout > 0 && (coordination === 'central' || !dryRun)
}

function checkKey(key: unknown): void {
  if (typeof key === 'string') return
  throw invalidKey(key)
}
