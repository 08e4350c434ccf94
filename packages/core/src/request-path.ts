import type { Clock } from './clock.ts'
import { combined, Levels, PassedDecision } from './combined-decision.ts'
import { type Counter, NO_SLOT } from './counter.ts'
import { type Decision, NO_POLICY, type PolicyDecision } from './decision.ts'
import { closedError, show, WeirError } from './errors.ts'
import { ALL_KEY } from './http/key-source.ts'
import { nodeReader } from './http/node-reader.ts'
import type { RequestReader } from './http/reader.ts'
import { Rules } from './http/rules.ts'
import type { PolicyOptions } from './policy.ts'
import { decideOne, partOf, refusedSlot } from './policy-part.ts'
import { StrictDecisions } from './strict-decisions.ts'

/** What the request path needs of the throttler that it is part of. */
export interface RequestPathHost {
  readonly clock: Clock
  readonly closed: boolean
  /** Brings a counter to the running interval; starts the throttler before its first decision, throws once it is closed. */
  roll(counter: Counter, now: number): void
  warn(error: WeirError, subject?: string): void
}

type Keys = readonly (string | undefined)[]

/** Decides on requests: reads what they are counted by, asks the counters of all policies that apply, and counts. */
export class RequestPath<Name extends string, Req> {
  readonly #host: RequestPathHost
  private readonly clock: Clock
  readonly #strictly: StrictDecisions
  private counters: readonly Counter[] = []
  #rules: readonly PolicyOptions<Req, Name>[] = []
  /** The only policy's counter, unless all requests share one key. */
  private single: Counter | undefined
  /** The only policy's cost. */
  private fixedCost = 1
  #strict = false
  /** The places of all policies. */
  #places: readonly number[] = []
  /** For each policy whether all requests share one counter, and what a request costs that nobody says the cost of. */
  private shared: readonly boolean[] = []
  #costs: readonly number[] = []
  /** The place of a request's key in each counter, while it is decided about. */
  #slots: number[] = []
  #deciding = false
  /** For `#passAll`: the place of a request's key in each counter, and what was known of it before. */
  private found: number[] = []
  private before: Float64Array = new Float64Array(0)
  /** What decisions refer to, of the last request with so many policies. */
  private levels: (Levels | undefined)[] = []
  #requestRules: Rules<Req> | undefined

  constructor(host: RequestPathHost) {
    this.#host = host
    this.clock = host.clock
    const self = this
    this.#strictly = new StrictDecisions({
      clock: host.clock,
      get counters() {
        return self.counters
      },
      roll: (counter, at) => host.roll(counter, at),
      costOf: (cost, index) => this.#costOf(cost, index),
      decide: (keys, costs, count) => this.#decideAll(keys, costs, count),
    })
  }

  /** Takes other rules over, with their counters in the same order. */
  adopt(rules: readonly PolicyOptions<Req, Name>[], counters: readonly Counter[]): void {
    this.#rules = rules
    this.counters = counters
    this.single = counters.length === 1 && rules[0]?.key !== ALL_KEY ? counters[0] : undefined
    this.#slots = counters.map(() => NO_SLOT)
    this.found = counters.map(() => NO_SLOT)
    this.before = new Float64Array(counters.length)
    this.levels = [undefined, ...counters.map(() => undefined)]
    this.#places = counters.map((_, place) => place)
    this.#strict = counters.some(({ policy }) => policy.strict)
    this.shared = rules.map(({ key }) => key === ALL_KEY)
    this.#costs = rules.map(({ cost }) => (typeof cost === 'number' ? cost : 1))
    this.fixedCost = this.#costs[0] ?? 1
    this.#requestRules = undefined
  }

  /** As the throttler's. */
  check(subject: string | Req, cost?: number): Decision<Name> {
    const counter = this.single
    if (counter === undefined || typeof subject !== 'string') return this.#checkEach(subject, cost, true)
    const now = this.clock.monotonic()
    if (now >= counter.rollAt) this.#host.roll(counter, now)
    return decideOne(counter, subject, cost === undefined ? this.fixedCost : this.#costOf(cost, 0), now) as Decision<Name>
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
      const counter = this.counters[place]
      if (key !== undefined && counter !== undefined) {
        const now = this.clock.monotonic()
        if (now >= counter.rollAt) this.#host.roll(counter, now)
        return decideOne(counter, key, this.#costOf(costs[place], place), now) as Decision<Name>
      }
    }
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  /** As the throttler's. */
  async checkAsync(subject: string | Req, cost?: number): Promise<Decision<Name>> {
    if (typeof subject !== 'string') {
      const { keys, costs } = this.#read(subject, cost)
      return this.decideAsync(keys, costs)
    }
    const keys = this.shared.map((shared) => (shared ? ALL_KEY : subject))
    return this.decideAsync(keys, this.#costsOf(cost))
  }

  /** As the throttler's. */
  decideAsync(
    keys: Keys,
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
  ): Decision<Name> | Promise<Decision<Name>> {
    const asking = this.#strict ? this.#strictly.whoMustAsk(keys, costs, applying ?? this.#places, applied) : []
    if (asking.length > 0) return this.#strictly.decide([...keys], [...costs], asking) as Promise<Decision<Name>>
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  #checkEach(subject: string | Req, cost: number | undefined, count: boolean): Decision<Name> {
    if (typeof subject === 'string') return this.#decideAll(subject, this.#costsOf(cost), count)
    const { keys, costs } = this.#read(subject, cost)
    return this.#decideAll(keys, costs, count)
  }

  /** A cost for each policy: the given one, or its own. */
  #costsOf(cost: number | undefined): readonly number[] {
    return cost === undefined ? this.#costs : this.#costs.map(() => cost)
  }

  /** A key and a cost for each policy, as its rule finds them in a request. */
  #read(request: Req, cost: number | undefined): { keys: Keys; costs: readonly number[] } {
    if (typeof request !== 'object' || request === null) {
      throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, or a request; it is ${show(request)}.`)
    }
    this.#requestRules ??= new Rules(this.#rules, nodeReader as unknown as RequestReader<Req>, {
      report: (error, about) => this.#host.warn(error, about),
    })
    this.#requestRules.evaluate(request)
    // Copies, since a listener may ask about another request while this one is decided about.
    const { keys, costs } = this.#requestRules
    return { keys: [...keys], costs: cost === undefined ? [...costs] : this.#costsOf(cost) }
  }

  /**
   * Counts a request at all policies at once, for as long as each lets it pass without having to think. Undefined when one does
   * not: then nothing has happened. Nothing is called here that could ask for another decision meanwhile.
   */
  #passAll(keys: string | Keys, costs: readonly number[], places: readonly number[], applied: number): PassedDecision | undefined {
    const now = this.clock.monotonic()
    const { counters, shared, found, before } = this
    let levels = this.levels[applied]
    const numbers: number[] = new Array(3 * applied)
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const counter = counters[i] as Counter
      const cost = costs[i] as number
      const key = typeof keys !== 'string' ? keys[i] : shared[i] === true ? ALL_KEY : keys
      if (key === undefined || now >= counter.rollAt || !isCost(cost)) return this.#takeBack(costs, places, at)
      const slot = shared[i] === true ? counter.findAgain(key) : counter.table.find(key)
      if (slot < 0) return this.#takeBack(costs, places, at)
      found[at] = slot
      before[at] = counter.knownAt(slot)
      if (!counter.takes(slot, cost)) return this.#takeBack(costs, places, at)
      numbers[3 * at] = counter.remaining(slot, now)
      numbers[3 * at + 1] = counter.resetAfter(slot, now)
      numbers[3 * at + 2] = cost
      if (levels !== undefined && levels.cells[at] !== counter.cell) levels = undefined
    }
    if (levels === undefined) levels = this.#levelsOf(places, applied)
    return new PassedDecision(levels, typeof keys === 'string' ? keys : keysAt(keys, places, applied), numbers)
  }

  /** Puts right what `#passAll` has counted at the first `taken` policies. */
  #takeBack(costs: readonly number[], places: readonly number[], taken: number): undefined {
    for (let at = taken - 1; at >= 0; at--) {
      const i = places[at] as number
      const counter = this.counters[i] as Counter
      counter.takeBack(this.found[at] as number, this.before[at] as number, costs[i] as number)
    }
    return undefined
  }

  #levelsOf(places: readonly number[], applied: number): Levels {
    const here = places.slice(0, applied)
    const cells = here.map((i) => (this.counters[i] as Counter).cell)
    const keys = here.map((i) => (this.shared[i] === true ? ALL_KEY : undefined))
    return (this.levels[applied] = new Levels(cells, keys))
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
    const passed = count && applied > 1 ? this.#passAll(keys, costs, places, applied) : undefined
    if (passed !== undefined) return passed as Decision<Name>
    const nested = this.#deciding
    // A listener that asks for a decision while another one is being made must not change its slots.
    const slots = nested ? [] : this.#slots
    this.#deciding = true
    try {
      const counters = this.counters
      const now = this.clock.monotonic()
      let applying = 0
      let allowed = true
      for (let at = 0; at < applied; at++) {
        const i = places[at] as number
        const key = this.#keyOf(keys, i)
        if (key === undefined) continue
        applying++
        const counter = counters[i] as Counter
        if (now >= counter.rollAt) this.#host.roll(counter, now)
        const slot = this.shared[i] === true ? counter.locateAgain(key) : counter.locate(key)
        slots[i] = slot
        if (!isCost(costs[i])) costs = costs.with(i, this.#costOf(costs[i], i))
        if (slot < 0 ? counter.overflow === 'block' : !counter.admits(slot, costs[i] as number, now, count)) {
          if (!counter.policy.dryRun) allowed = false
          if (slot >= 0) slots[i] = refusedSlot(slot)
        }
      }
      if (applying === 0) {
        if (this.#host.closed) throw closedError()
        return NO_POLICY as Decision<Name>
      }
      const parts: PolicyDecision[] = new Array(applying)
      for (let at = 0, made = 0; made < applying; at++) {
        const i = places[at] as number
        const key = this.#keyOf(keys, i)
        if (key === undefined) continue
        parts[made++] = partOf(counters[i] as Counter, slots[i] as number, key, costs[i] as number, now, allowed, count)
      }
      return combined(parts) as Decision<Name>
    } finally {
      this.#deciding = nested
    }
  }

  #keyOf(keys: string | Keys, place: number): string | undefined {
    return typeof keys !== 'string' ? keys[place] : this.shared[place] === true ? ALL_KEY : keys
  }

  #costOf(cost: number | undefined, index: number): number {
    if (isCost(cost)) return cost
    this.#host.warn(
      new WeirError('WEIR_INVALID_COST', `A cost of ${show(cost)} counts as 1; it must be a finite number > 0.`),
      this.counters[index]?.policy.name,
    )
    return 1
  }
}

/** Whether a value can be what a request costs. */
export function isCost(cost: unknown): cost is number {
  return typeof cost === 'number' && cost > 0 && cost < Number.POSITIVE_INFINITY
}

function keysAt(keys: Keys, places: readonly number[], applied: number): readonly string[] {
  const copy: string[] = new Array(applied)
  for (let at = 0; at < applied; at++) copy[at] = keys[places[at] as number] as string
  return copy
}
