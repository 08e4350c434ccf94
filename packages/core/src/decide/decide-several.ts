import { ALL_KEY } from '../http/request/key-source.ts'
import { nodeReader } from '../http/request/node-reader.ts'
import type { RequestReader } from '../http/request/reader.ts'
import { Rules } from '../http/request/rules.ts'
import { bounded, boundedOnce, LONGEST_KEY } from '../keys/key-text.ts'
import { isCost } from '../keys/units.ts'
import { closedError, show, WeirError } from '../report/errors.ts'
import { CALLBACK_TIMEOUT } from '../report/user-function.ts'
import type { Clock } from '../time/clock.ts'
import { decideOne, partOf, refusedSlot } from './decide-one.ts'
import { type Decision, NO_POLICY, type PolicyDecision } from './decision.ts'
import { combined, type Levels, LevelsDecision, MOST_LEVELS } from './levels.ts'
import { type Counter, NO_SLOT } from './limiter.ts'
import type { PolicyOptions } from './policy.ts'
import type { SourceIndex } from './stats.ts'
import { StrictDecisions } from './strict.ts'

/** What the request path needs of the throttler that it is part of. */
export interface RequestPathHost {
  readonly clock: Clock
  readonly closed: boolean
  /** Brings a counter to the running interval; starts the throttler before its first decision, throws once it is closed. */
  roll(counter: Counter, now: number): void
  warn(error: WeirError, subject?: string): void
}

type Keys = readonly (string | undefined)[]

/** What was read of a request. */
interface Asked {
  readonly keys: Keys
  readonly costs: readonly number[]
}

/** Decides on requests: reads what they are counted by, asks the counters of all policies that apply, and counts. */
export class RequestPath<Name extends string, Req> {
  readonly #host: RequestPathHost
  readonly #clock: Clock
  readonly #strictly: StrictDecisions
  #counters: readonly Counter[] = []
  #rules: readonly PolicyOptions<Req, Name>[] = []
  /** The only policy's counter, unless all requests share one key. */
  #single: Counter | undefined
  /** The only policy's cost. */
  #fixedCost = 1
  /** Whether some policy is `strict`. */
  strict = false
  /** The places of all policies. */
  #places: readonly number[] = []
  /** For each policy whether all requests share one counter, and what a request costs that nobody says the cost of. */
  #shared: readonly boolean[] = []
  #costs: readonly number[] = []
  /** For `#decideAtOnce`: the place of a request's key in each counter, and what was known of it before. */
  #found: number[] = []
  #before: Float64Array = new Float64Array(0)
  /** What decisions refer to, of the last request with so many policies. */
  #levels: (Levels | undefined)[] = []
  #requestRules: Rules<Req> | undefined

  constructor(host: RequestPathHost) {
    this.#host = host
    this.#clock = host.clock
    const self = this
    this.#strictly = new StrictDecisions({
      clock: host.clock,
      get counters() {
        return self.#counters
      },
      roll: (counter, at) => host.roll(counter, at),
      costOf: (cost, index) => this.#costOf(cost, index),
      decide: (keys, costs, count) => this.#decideAll(keys, costs, count),
    })
  }

  /** Takes other rules over, with their counters in the same order. */
  adopt(rules: readonly PolicyOptions<Req, Name>[], counters: readonly Counter[]): void {
    this.#rules = rules
    this.#counters = counters
    this.#single = counters.length === 1 && rules[0]?.key !== ALL_KEY ? counters[0] : undefined
    this.#found = counters.map(() => NO_SLOT)
    this.#before = new Float64Array(counters.length)
    this.#levels = [undefined, ...counters.map(() => undefined)]
    this.#places = counters.map((_, place) => place)
    this.strict = counters.some(({ policy }) => policy.strict)
    this.#shared = rules.map(({ key }) => key === ALL_KEY)
    this.#costs = rules.map(({ cost }) => (typeof cost === 'number' ? cost : 1))
    this.#fixedCost = this.#costs[0] ?? 1
    this.#requestRules = undefined
  }

  /** As the throttler's. */
  check(subject: string | Req, cost?: number): Decision<Name> {
    const counter = this.#single
    if (counter === undefined || typeof subject !== 'string' || subject.length > LONGEST_KEY) return this.#checkEach(subject, cost, true)
    const now = this.#clock.monotonic()
    if (now >= counter.rollAt) this.#host.roll(counter, now)
    return decideOne(counter, subject, cost === undefined ? this.#fixedCost : this.#costOf(cost, 0), now) as Decision<Name>
  }

  /** As the throttler's. */
  peek(subject: string | Req, cost?: number): Decision<Name> {
    return this.#checkEach(subject, cost, false)
  }

  /** As the throttler's. */
  decide(keys: Keys, costs: readonly number[], applying?: readonly number[], applied?: number): Decision<Name> {
    if (applied === 1 && applying !== undefined) {
      const place = applying[0] as number
      const key = keys[place]
      const counter = this.#counters[place]
      if (key !== undefined && counter !== undefined) {
        const now = this.#clock.monotonic()
        if (now >= counter.rollAt) this.#host.roll(counter, now)
        return decideOne(counter, key, this.#costOf(costs[place], place), now) as Decision<Name>
      }
    }
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  /** As the throttler's. */
  async checkAsync(subject: string | Req, cost?: number): Promise<Decision<Name>> {
    if (typeof subject !== 'string') return this.#checkRequest(subject, cost)
    const key = bounded(subject)
    const keys = this.#shared.map((shared) => (shared ? ALL_KEY : key))
    return this.decideAsync(keys, this.#costsOf(cost))
  }

  /** As the throttler's. */
  decideAsync(
    keys: Keys,
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
  ): Decision<Name> | Promise<Decision<Name>> {
    const asking = this.strict ? this.#strictly.whoMustAsk(keys, costs, applying ?? this.#places, applied) : []
    if (asking.length > 0) return this.#strictly.decide([...keys], [...costs], asking) as Promise<Decision<Name>>
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  #checkEach(subject: string | Req, cost: number | undefined, count: boolean): Decision<Name> {
    if (typeof subject === 'string') return this.#decideAll(count ? bounded(subject) : boundedOnce(subject), this.#costsOf(cost), count)
    const read = this.#read(subject, cost)
    if (!(read instanceof Promise)) return this.#decideAll(read.keys, read.costs, count)
    // Nobody waits for it.
    read.catch(() => {})
    throw new WeirError('WEIR_ASYNC_POLICY', 'A function that reads the request returned a promise; ask with checkAsync().')
  }

  /** A cost for each policy: the given one, or its own. */
  #costsOf(cost: number | undefined): readonly number[] {
    return cost === undefined ? this.#costs : this.#costs.map(() => cost)
  }

  async #checkRequest(request: Req, cost: number | undefined): Promise<Decision<Name>> {
    const rules = this.#rules
    const { keys, costs } = await this.#read(request, cost)
    // What was read is by the old rules, which are in other places.
    if (rules !== this.#rules) return this.#checkRequest(request, cost)
    return this.decideAsync(keys, costs)
  }

  /** A key and a cost for each policy, as its rule finds them in a request. A promise when a function answers later. */
  #read(request: Req, cost: number | undefined): Asked | Promise<Asked> {
    if (typeof request !== 'object' || request === null) {
      throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, or a request; it is ${show(request)}.`)
    }
    this.#requestRules ??= new Rules(this.#rules, nodeReader as unknown as RequestReader<Req>, {
      report: (error, about) => this.#host.warn(error, about),
      patience: { clock: this.#clock, timeout: CALLBACK_TIMEOUT },
    })
    const applies = this.#requestRules.evaluate(request)
    const asked = ({ keys, costs }: Asked): Asked => ({ keys, costs: cost === undefined ? costs : this.#costsOf(cost) })
    if (typeof applies === 'object')
      return applies.then((read) => asked(read ?? { keys: this.#rules.map(() => undefined), costs: this.#costs }))
    // Copies, since a listener may ask about another request while this one is decided about.
    const { keys, costs } = this.#requestRules
    return asked({ keys: [...keys], costs: [...costs] })
  }

  /**
   * @param keys a key for each policy, or one for all of them
   * @param places those of the policies that apply, of which the first `applied` hold
   */
  #decideAll(
    keys: string | Keys,
    costs: readonly number[],
    count: boolean,
    places: readonly number[] = this.#places,
    applied: number = places.length,
  ): Decision<Name> {
    const now = this.#clock.monotonic()
    const decided = count && applied > 1 && applied <= MOST_LEVELS ? this.#decideAtOnce(keys, costs, places, applied, now) : undefined
    return (decided ?? this.#decideEach(keys, costs, count, places, applied, now)) as Decision<Name>
  }

  /**
   * Decides in one go, where no policy has to think: each counts the request for as long as none refuses it. Undefined when one
   * has to think: then nothing has happened. Nothing is called here that could ask for another decision meanwhile.
   */
  #decideAtOnce(
    keys: string | Keys,
    costs: readonly number[],
    places: readonly number[],
    applied: number,
    now: number,
  ): LevelsDecision | undefined {
    const counters = this.#counters
    const shared = this.#shared
    const found = this.#found
    const before = this.#before
    let levels = this.#levels[applied]
    const checked = costs === this.#costs
    let refused = 0
    let counted = 0
    const numbers: number[] = new Array(3 * applied)
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const counter = counters[i] as Counter
      const cost = costs[i] as number
      const key = typeof keys !== 'string' ? keys[i] : shared[i] === true ? ALL_KEY : keys
      if (key === undefined || now >= counter.rollAt || (!checked && !isCost(cost))) return this.#takeBack(costs, places, counted)
      const slot = shared[i] === true ? counter.findAgain(key) : counter.table.find(key)
      if (slot < 0) return this.#takeBack(costs, places, counted)
      found[at] = slot
      before[at] = counter.knownAt(slot)
      if (refused === 0 && counter.takes(slot, cost)) counted++
      else if (refused === 0 || !counter.fits(slot, cost)) {
        if (counter.policy.dryRun || counter.fullBy(slot, cost) < 0) return this.#takeBack(costs, places, counted)
        refused |= 1 << at
      }
      numbers[3 * at] = counter.remaining(slot, now)
      numbers[3 * at + 1] = counter.resetAfter(slot, now)
      numbers[3 * at + 2] = cost
      if (levels !== undefined && levels.cells[at] !== counter.cell) levels = undefined
    }
    if (refused !== 0) this.#refuse(costs, places, refused, counted, now, numbers)
    levels ??= this.#levelsOf(places, applied)
    return new LevelsDecision(levels, typeof keys === 'string' ? keys : keysAt(keys, places, applied), numbers, refused)
  }

  /** Puts right what `#decideAtOnce` has counted at the first `counted` policies. */
  #takeBack(costs: readonly number[], places: readonly number[], counted: number): undefined {
    for (let at = counted - 1; at >= 0; at--) {
      const i = places[at] as number
      const counter = this.#counters[i] as Counter
      counter.takeBack(this.#found[at] as number, this.#before[at] as number, costs[i] as number)
    }
    return undefined
  }

  /** Makes the numbers those of a refusal: nothing was taken, and what refused it counts that. */
  #refuse(costs: readonly number[], places: readonly number[], refused: number, counted: number, now: number, numbers: number[]): void {
    this.#takeBack(costs, places, counted)
    for (let at = 0; 3 * at < numbers.length; at++) {
      const i = places[at] as number
      const counter = this.#counters[i] as Counter
      const slot = this.#found[at] as number
      const full = (refused & (1 << at)) !== 0
      if (full) counter.stats.countByLimit(counter.fullBy(slot, costs[i] as number) as SourceIndex)
      numbers[3 * at] = counter.remaining(slot, now)
      if (full) numbers[3 * at + 1] = counter.rollAt - now
      numbers[3 * at + 2] = 0
    }
  }

  #levelsOf(places: readonly number[], applied: number): Levels {
    const here = places.slice(0, applied)
    const cells = here.map((i) => (this.#counters[i] as Counter).cell)
    const keys = here.map((i) => (this.#shared[i] === true ? ALL_KEY : undefined))
    return (this.#levels[applied] = { cells, keys })
  }

  /** Looks at all policies first, then counts at all of them, or at none. */
  #decideEach(
    keys: string | Keys,
    costs: readonly number[],
    count: boolean,
    places: readonly number[],
    applied: number,
    now: number,
  ): Decision {
    const counters = this.#counters
    // Made for each request, since a listener may ask for a decision while this one is being made.
    const slots: number[] = []
    let applying = 0
    let allowed = true
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const key = this.#keyOf(keys, i)
      if (key === undefined) continue
      applying++
      const counter = counters[i] as Counter
      if (now >= counter.rollAt) this.#host.roll(counter, now)
      const slot = counter.locate(key)
      slots[at] = slot
      if (!isCost(costs[i])) costs = costs.with(i, this.#costOf(costs[i], i))
      if (slot < 0 ? counter.overflow === 'block' : !counter.admits(slot, costs[i] as number, now, count)) {
        if (!counter.policy.dryRun) allowed = false
        if (slot >= 0) slots[at] = refusedSlot(slot)
      }
    }
    if (applying === 0) {
      if (this.#host.closed) throw closedError()
      return NO_POLICY
    }
    const parts: PolicyDecision[] = []
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const key = this.#keyOf(keys, i)
      if (key === undefined) continue
      parts.push(partOf(counters[i] as Counter, slots[at] as number, key, costs[i] as number, now, allowed, count))
    }
    return combined(parts)
  }

  #keyOf(keys: string | Keys, place: number): string | undefined {
    if (typeof keys === 'string') return this.#shared[place] === true ? ALL_KEY : keys
    const key = keys[place]
    return key === undefined ? undefined : boundedOnce(key)
  }

  #costOf(cost: number | undefined, index: number): number {
    if (isCost(cost)) return cost
    this.#host.warn(
      new WeirError('WEIR_INVALID_COST', `A cost of ${show(cost)} counts as 1; it must be a finite number > 0.`),
      this.#counters[index]?.policy.name,
    )
    return 1
  }
}

function keysAt(keys: Keys, places: readonly number[], applied: number): readonly string[] {
  const copy: string[] = new Array(applied)
  for (let at = 0; at < applied; at++) copy[at] = keys[places[at] as number] as string
  return copy
}
