import { changed, type Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy } from '../decide/policy.ts'
import type { Asks } from '../decide/request-path.ts'
import { parseDuration } from '../options/duration.ts'
import { AcquireError } from '../queue/acquire-error.ts'
import { Asked, type AskedNow } from '../queue/asked.ts'
import { counterId } from '../queue/line.ts'
import type { Leaving } from '../queue/options.ts'
import type { Queues } from '../queue/queues.ts'
import { show, WeirError } from '../report/errors.ts'
import { askAll, CALLBACK_TIMEOUT, isThenable, NoAnswer, type Patience, settle } from '../report/user-function.ts'
import { countedKey } from './limiters-of.ts'
import { type AcquireHost, went } from './open-queues.ts'

/** A request that may be delayed, as its adapter sees it: nothing here reads requests or responses. */
export interface Delayed {
  /** The client, by its address. Undefined if unknown. */
  readonly client: string | undefined
  /** How long functions may take. */
  readonly patience: Patience
  /** Calls the `delay` function of a policy for a request that is this many units above the limit. */
  ask(delay: DelayFunction, over: number): unknown
  /**
   * Calls a function once when the client has disconnected.
   *
   * @returns stops listening
   */
  whenGone(then: () => void): () => void
}

/** Option `delay` as a function. */
type DelayFunction = (over: number, request: unknown) => unknown

/** A policy's part of a request above its limit, if a function decides how long it waits. */
interface Slowed {
  readonly limiter: Limiter
  readonly key: string
  readonly cost: number
  readonly counter: string
  readonly over: number
}

/** The policies that delay a request. */
interface Plan {
  /** By a function. */
  readonly slowed: readonly PolicyDecision[]
  /** Until the request fits. */
  readonly waiting: readonly PolicyDecision[]
}

/** The longest delay of the functions, and its counter. */
type Longest = { readonly delayMs: number; readonly counter: string }

const NONE: Longest = { delayMs: 0, counter: '' }

/**
 * Reports to the queues that a client has left. Very many requests may be delayed, and an `AbortController` needs several times as much
 * memory.
 */
class Departure implements Leaving {
  aborted = false
  #listeners: readonly (() => void)[] = []

  get own(): true {
    return true
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners = [...this.#listeners, listener]
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener)
  }

  abort(): void {
    if (this.aborted) return
    this.aborted = true
    for (const listener of this.#listeners) listener()
  }
}

/** Delays requests of a throttler instead of rejecting them (`delay`). This file is loaded if a policy has that option. */
export class Delays {
  readonly #host: AcquireHost
  readonly #queues: Queues<Decision>
  /** The longest delay that a function may return, in milliseconds. */
  readonly #maxWait: number

  constructor(host: AcquireHost, queues: Queues<Decision>, maxWait: number) {
    this.#host = host
    this.#queues = queues
    this.#maxWait = maxWait
  }

  /** Implements the throttler's `checkAsync`. */
  async check(key: string, { cost, limit }: Asks): Promise<Decision> {
    const { path, rules } = this.#host
    const limits = limit === undefined ? undefined : rules.map(() => limit)
    return await this.decide({ keys: path.keysOf(countedKey(key)), ...path.placed(cost), limits })
  }

  /**
   * Decides a request, and delays it if its policies do. Returns a promise only if the request has to wait.
   *
   * @throws (rejects) AcquireError with the reason `'aborted'` if the client has left. Then nothing is counted
   */
  decide(asked: AskedNow, request?: Delayed): Decision | Promise<Decision> {
    const { path } = this.#host
    if (path.waits) return this.#askStore(this.#copy(asked), request)
    const seen = path.look(asked.keys, asked.costs, asked.places, asked.places.length, asked.limits)
    const plan = this.#planOf(seen)
    if (plan === undefined) return this.#decide(asked)
    const copy = this.#copy(asked)
    return this.#mayHold(copy, plan, request?.client) ? this.#hold(copy, seen, plan, request) : this.#decide(asked)
  }

  /** Whether one more request may wait. In a flood, requests that may not wait must cost little. */
  #mayHold(asked: Asked, { slowed, waiting }: Plan, client: string | undefined): boolean {
    if (slowed.some((part) => this.#queues.crowded(counterId(part), client))) return false
    const [first] = waiting
    return first === undefined || this.#queues.obstacle(counterId(first), this.#wanted(asked, waiting, undefined, client)) === undefined
  }

  async #askStore(asked: Asked, request: Delayed | undefined): Promise<Decision> {
    const now = asked.at(this.#host.limiters)
    const others = now.places.some((place) => this.#isLined(now, place))
    const seen = others ? this.#host.path.look(now.keys, now.costs, now.places, now.places.length, now.limits) : await this.#decide(now)
    if (seen.allowed && !others) return seen
    const plan = this.#planOf(seen)
    if (plan !== undefined) return this.#hold(asked, seen, plan, request)
    return others ? this.#decide(asked.at(this.#host.limiters)) : seen
  }

  #isLined({ keys }: AskedNow, place: number): boolean {
    const { policy } = this.#host.limiters[place] as Limiter
    return typeof policy.delay === 'number' && policy.delay > 0 && this.#queues.has(counterId({ policy, key: keys[place] as string }))
  }

  /** @returns undefined if the request is allowed immediately, and if it must be rejected */
  #planOf(seen: Decision): Plan | undefined {
    const slowed: PolicyDecision[] = []
    const waiting: PolicyDecision[] = []
    for (const part of seen.parts as readonly PolicyDecision[]) {
      const { policy, allowed, reason, retryAfterMs } = part
      if (policy === undefined) continue
      const { delay } = policy
      if (allowed) {
        // Waiting requests came first.
        if (typeof delay === 'number' && delay > 0 && this.#queues.has(counterId(part))) waiting.push(part)
        continue
      }
      if (delay === 0 || (reason !== 'limit' && reason !== 'storeDown') || retryAfterMs === Number.POSITIVE_INFINITY) return undefined
      if (typeof delay === 'function') slowed.push(part)
      else if (retryAfterMs <= longestWait(part)) waiting.push(part)
      else return undefined
    }
    return slowed.length + waiting.length === 0 ? undefined : { slowed, waiting }
  }

  async #hold(asked: Asked, seen: Decision, { slowed, waiting }: Plan, request: Delayed | undefined): Promise<Decision> {
    const host = this.#host
    const above = slowed.map((part) => this.#slowed(part, asked))
    const answers = above.map(({ limiter, over }) => this.#ask(limiter.policy, over, request))
    const later = answers.some(isThenable)
    let longest: Longest | undefined = later ? NONE : this.#longest(above, answers)
    if (longest === undefined) return this.#reject(asked, seen)

    const decided = asked.size > slowed.length + waiting.length ? this.#decideRest(asked, [...slowed, ...waiting]) : undefined
    const others = decided instanceof Promise ? await decided : decided
    if (others?.allowed === false) return others
    const counted = [...((others?.parts ?? []) as readonly PolicyDecision[]), ...above.map((one) => this.#count(one))]

    const gone = new Departure()
    let left = false
    const stay = request?.whenGone(() => {
      left = true
      gone.abort()
    })
    try {
      if (later) {
        const patience = request?.patience ?? { clock: host.clock, timeout: CALLBACK_TIMEOUT }
        const settled = await Promise.all(
          answers.map(async (answer) => (isThenable(answer) ? (await settle(answer, patience)).value : answer)),
        )
        longest = this.#longest(above, settled)
        if (longest === undefined) {
          this.#giveBack(counted)
          return this.#reject(asked, seen)
        }
      }
      const parts = await this.#wait(asked, counted, waiting, longest, gone, request?.client)
      if (parts !== undefined) return went(host, this.#together(parts))
    } finally {
      stay?.()
    }
    if (left) throw new AcquireError('aborted', 'The client disconnected while its request was delayed. Send no response.')
    return this.#reject(asked, seen)
  }

  /** Decides by the policies that have not rejected a request. Undefined without any. */
  #decideRest(asked: Asked, rejecting: readonly PolicyDecision[]): Decision | Promise<Decision> | undefined {
    const rejecters = new Set(rejecting.map(({ policy }) => policy?.id))
    const rest = asked.only((id) => !rejecters.has(id)).at(this.#host.limiters)
    return rest.places.length === 0 ? undefined : this.#decide(rest)
  }

  /**
   * @param counted the parts that were counted on arrival
   * @returns undefined if the request is not allowed. Then nothing is counted
   */
  async #wait(
    asked: Asked,
    counted: readonly PolicyDecision[],
    waiting: readonly PolicyDecision[],
    longest: Longest,
    gone: Departure,
    client: string | undefined,
  ): Promise<readonly PolicyDecision[] | undefined> {
    const queues = this.#queues
    const taken = counted.length === 0 ? undefined : this.#together(counted)
    const pace = taken?.delayMs ?? 0
    const holds = taken !== undefined && Math.max(pace, longest.delayMs) > 0
    if (holds && waiting.length === 0) return this.#held(queues.hold(taken, gone, client, longest.delayMs > pace ? longest : undefined))
    // Together, because each of the delays begins now.
    const both: [Decision | Promise<Decision> | undefined, Promise<Decision> | undefined] = [
      holds ? queues.hold(taken, gone, client, longest.delayMs > pace ? longest : undefined) : taken,
      waiting.length === 0
        ? undefined
        : queues.wait(counterId(waiting[0] as PolicyDecision), this.#wanted(asked, waiting, gone, client), rejectionOf(waiting)),
    ]
    const ended = await Promise.allSettled(
      both.map(async (one) => {
        try {
          return await one
        } catch (error) {
          gone.abort()
          throw error
        }
      }),
    )
    const failed = ended.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
    const parts = ended.flatMap((one) => (one.status === 'fulfilled' ? ((one.value?.parts ?? []) as readonly PolicyDecision[]) : []))
    if (failed === undefined) return parts
    this.#giveBack(parts)
    if (failed.reason instanceof AcquireError) return undefined
    throw failed.reason
  }

  /** Does the same as `#wait`, for a request without waiting policies. */
  async #held(holding: Promise<Decision>): Promise<readonly PolicyDecision[] | undefined> {
    try {
      return (await holding).parts as readonly PolicyDecision[]
    } catch (error) {
      if (error instanceof AcquireError) return undefined
      throw error
    }
  }

  #wanted(asked: Asked, waiting: readonly PolicyDecision[], signal: Leaving | undefined, client: string | undefined) {
    const ids = new Set(waiting.map(({ policy }) => policy?.id))
    const timeout = Math.max(...waiting.map(longestWait))
    return {
      cost: undefined,
      limit: undefined,
      timeout,
      signal,
      client,
      priority: 0,
      returns: false,
      asked: asked.only((id) => ids.has(id)),
    } as const
  }

  #slowed(part: PolicyDecision, asked: Asked): Slowed {
    const { limiters, clock } = this.#host
    const place = limiters.findIndex(({ policy }) => policy.id === part.policy?.id)
    const limiter = limiters[place] as Limiter
    const cost = asked.at(limiters).costs[place] as number
    const slot = limiter.locate(part.key)
    const now = clock.monotonic()
    const over = slot < 0 ? cost : (limiter.meter.over?.(slot, now) ?? 0) + cost - limiter.meter.remaining(slot, now)
    return { limiter, key: part.key, cost, counter: counterId(part), over }
  }

  #ask({ delay }: Policy, over: number, request: Delayed | undefined): unknown {
    return request === undefined ? askAll(delay as DelayFunction, over, undefined) : request.ask(delay as DelayFunction, over)
  }

  /** @returns undefined if one of them rejects the request */
  #longest(above: readonly Slowed[], answers: readonly unknown[]): Longest | undefined {
    let longest = NONE
    for (const [at, answer] of answers.entries()) {
      const { limiter, counter } = above[at] as Slowed
      if (answer === Number.POSITIVE_INFINITY) return undefined
      const delay = answer instanceof NoAnswer ? answer : this.#durationOf(answer)
      if (delay instanceof NoAnswer) {
        const message = `The delay function of policy ${show(limiter.policy.name)} ${delay.problem}. Such requests are rejected.`
        this.#host.warn(new WeirError('WEIR_WARN_CALLBACK_FAILED', message), limiter.policy.name)
        return undefined
      }
      if (delay > this.#maxWait) return undefined
      if (delay > longest.delayMs) longest = { delayMs: delay, counter }
    }
    return longest
  }

  #durationOf(answer: unknown): number | NoAnswer {
    try {
      return parseDuration(answer, 'delay', 0)
    } catch {
      return new NoAnswer(`returned ${show(answer)}. Return a number of milliseconds, a duration such as "500ms", or Infinity`)
    }
  }

  /** Counts a request above the limit. */
  #count({ limiter, key, cost }: Slowed): PolicyDecision {
    const { clock } = this.#host
    const now = clock.monotonic()
    const { meter } = limiter
    // Other requests may have been decided meanwhile.
    if (now >= meter.rollAt) this.#host.roll(limiter, now)
    const slot = limiter.locate(key, now)
    if (slot < 0) return new PolicyDecision(limiter.cell.passed, key, 0, 0, 0)
    meter.add(slot, cost, now)
    return new PolicyDecision(limiter.outcome(slot, 'ok'), key, meter.remaining(slot, now), Math.ceil(meter.resetAfterMs(slot, now)), cost)
  }

  /** Rejects a request as if no policy delayed it. */
  #reject(asked: Asked, seen: Decision): Decision | Promise<Decision> {
    if (!this.#queues.closing) return this.#decide(asked.at(this.#host.limiters))
    if (!seen.allowed) return seen
    return changed(seen, { allowed: false, reason: 'limit', cost: 0, retryAfterMs: 1 })
  }

  #decide({ keys, costs, places, limits }: AskedNow): Decision | Promise<Decision> {
    return this.#host.path.decideAsync(keys, costs, places, places.length, limits)
  }

  #copy(asked: AskedNow): Asked {
    const keys = asked.keys.map((key) => (key === undefined ? undefined : countedKey(key)))
    return Asked.of(this.#host.limiters, { ...asked, keys })
  }

  #giveBack(parts: readonly PolicyDecision[]): void {
    if (parts.length > 0) this.#host.giveBack(this.#together(parts))
  }

  /** Combines parts in the order of the policies. */
  #together(parts: readonly PolicyDecision[]): Decision {
    const place = ({ policy }: PolicyDecision) => this.#host.limiters.findIndex((limiter) => limiter.policy.id === policy?.id)
    return combined(parts.toSorted((a, b) => place(a) - place(b)))
  }
}

/** The rejection by the policies that a request waits for. Undefined if it only waits behind others. */
function rejectionOf(waiting: readonly PolicyDecision[]): Decision | undefined {
  const rejected = waiting.filter(({ allowed }) => !allowed)
  return rejected.length === 0 ? undefined : combined(rejected)
}

/** The longest delay by a policy. An algorithm that delays requests computes it from the key's own limit. */
function longestWait({ policy, limit }: PolicyDecision): number {
  const { delay, algorithm, interval } = policy as Policy
  return algorithm.holds?.(limit, interval) ?? (delay as number)
}
