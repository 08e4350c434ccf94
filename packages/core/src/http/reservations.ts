import type { Receipt } from '../budget/receipt.ts'
import { type Costs, isByName, isCosts } from '../decide/costs.ts'
import type { Decision } from '../decide/decision.ts'
import type { RequestPolicyOptions } from '../decide/policy.ts'
import { show } from '../report/errors.ts'
import { ask, askAll, bounded, isThenable, NoAnswer, type Patience, settle } from '../report/user-function.ts'
import { type Answering, whenEnded } from '../report/when-ended.ts'
import type { AdapterSide } from '../throttler/adapter-side.ts'
import type { AdapterOptions } from './adapter-options.ts'
import { keepUntilHandled } from './handler-end.ts'
import type { Report } from './reports.ts'

type ReservationOptions<Req, Args extends readonly unknown[], Name extends string> = Pick<
  AdapterOptions<Req, Args, Name>,
  'settle' | 'ttl'
> & { readonly estimate: (request: Req) => unknown }

/** Reserves the units of requests until their responses and handlers have ended: `estimate`, `settle`, `ttl`. */
export class Reservations<Req, Args extends readonly unknown[], Name extends string> {
  readonly #options: ReservationOptions<Req, Args, Name>
  readonly #side: Pick<AdapterSide<Name>, 'receiptOf'>
  readonly #patience: Patience
  readonly #report: Report
  /** The estimate of each request that is being read, because several policies need it. Null after a failure. */
  readonly #estimates = new WeakMap<object, Costs | null | Promise<Costs | null>>()
  /** The arguments of the middleware, for receipts whose handler may have started. */
  readonly #args = new WeakMap<Decision<Name>, Args>()
  /** Receipts of requests that were checked without their response. */
  readonly #unwatched = new WeakSet<Decision<Name>>()
  #names: ReadonlySet<string> = new Set()

  constructor(
    options: ReservationOptions<Req, Args, Name>,
    side: Pick<AdapterSide<Name>, 'receiptOf'>,
    patience: Patience,
    report: Report,
  ) {
    this.#options = options
    this.#side = side
    this.#patience = patience
    this.#report = report
  }

  /** The rules with costs by the estimate. If it fails, their own costs apply. */
  rules(rules: readonly RequestPolicyOptions<Req, Name>[]): readonly RequestPolicyOptions<Req, Name>[] {
    this.#names = new Set(rules.map(({ name }) => name ?? 'default'))
    return rules.map((rule) => {
      const { cost = 1 } = rule
      const own = (request: Req) => (typeof cost === 'function' ? cost(request) : cost)
      const estimated = (request: Req) => {
        const costs = this.#estimate(request)
        if (!(costs instanceof Promise)) return costs ?? own(request)
        const later = costs.then((known) => {
          const answer = known ?? own(request)
          return isThenable(answer) ? settle(answer, this.#patience).then(({ value }) => value as number) : answer
        })
        bounded.add(later)
        return later
      }
      return { ...rule, cost: estimated }
    })
  }

  /** Forgets the earlier estimate of a request that is read again. */
  begin(request: Req): void {
    this.#estimates.delete(request as object)
  }

  /** @returns null if the client has left, so that no handler should start. The request counts in full then */
  open(decision: Decision<Name>, response: Answering | undefined): Receipt<Name> | null {
    const { ttl } = this.#options
    const receipt = this.#side.receiptOf(decision, ttl === undefined ? {} : { ttl })
    if (response === undefined) this.#unwatched.add(receipt)
    else if (!this.#keep(receipt, response)) return null
    return receipt
  }

  /** Implements the guard's `watch`. */
  watch(decision: Decision<Name>, response: Answering, args: Args): void {
    this.#args.set(decision, args)
    if (this.#unwatched.delete(decision)) this.#keep(decision as Receipt<Name>, response)
  }

  /** Implements the guard's `settle`. */
  settle(decision: Decision<Name>, _status: number, _complete: boolean, args: Args): void {
    this.#args.set(decision, args)
    this.#end(decision as Receipt<Name>)
  }

  #keep(receipt: Receipt<Name>, response: Answering): boolean {
    return keepUntilHandled(response, { whenEnded }, () => this.#end(receipt))
  }

  #estimate(request: Req): Costs | null | Promise<Costs | null> {
    let costs = this.#estimates.get(request as object)
    if (costs === undefined) {
      const answer = ask(this.#options.estimate, request)
      costs = isThenable(answer) ? settle(answer, this.#patience).then(({ value }) => this.#estimated(value)) : this.#estimated(answer)
      this.#estimates.set(request as object, costs)
    }
    return costs
  }

  #estimated(answer: unknown): Costs | null {
    if (isCosts(answer, this.#names)) return answer
    const what = 'Each policy counts its own "cost", because option "estimate"'
    if (answer instanceof NoAnswer) this.#report('estimate', what, answer)
    else this.#report('estimate', `${what} must return numbers > 0 by policy name, but returned`, show(answer))
    return null
  }

  #end(receipt: Receipt<Name>): void {
    const args = this.#args.get(receipt)
    const question = this.#options.settle
    const answer = receipt.isOpen && question !== undefined && args !== undefined ? askAll(question, ...args) : undefined
    if (isThenable(answer)) void settle(answer, this.#patience).then(({ value }) => receipt.settle(this.#actual(value)))
    else receipt.settle(this.#actual(answer))
  }

  #actual(answer: unknown): Costs<Name> | undefined {
    const what = 'The last reported or else the reserved units count, because option "settle"'
    try {
      // Copied, because a getter may throw while the units are counted.
      if (isByName(answer) && !(answer instanceof NoAnswer)) return { ...answer } as Costs<Name>
      if (answer instanceof NoAnswer) this.#report('settle', what, answer)
      else if (answer !== undefined) this.#report('settle', `${what} must return numbers by policy name, but returned`, show(answer))
    } catch (error) {
      this.#report('settle', `${what} returned an unreadable object`, error)
    }
    return undefined
  }
}

/** The part of a guard that reservations need. */
interface Reserving<Name extends string, Req> {
  readonly side: AdapterSide<Name, Req>
  readonly throttler: { close(): Promise<void> }
  readonly owned: boolean
  readonly report: Report
}

/**
 * The reservations of a guard. Undefined without `estimate`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` if the store can't keep open reservations of its policies
 */
export function reservationsBy<Req, Args extends readonly unknown[], Name extends string>(
  { estimate, ...options }: AdapterOptions<Req, Args, Name>,
  { side, throttler, owned, report }: Reserving<Name, Req>,
  which: (policy: string) => boolean,
  patience: Patience,
): Reservations<Req, Args, Name> | undefined {
  if (estimate === undefined) return undefined
  try {
    side.checkReservations(which)
  } catch (error) {
    // Frees the names of its policies.
    if (owned) void throttler.close()
    throw error
  }
  return new Reservations({ ...options, estimate }, side, patience, report)
}
