import { drainTime } from '../algorithms/drain-time.ts'
import type { MeterPolicy } from '../algorithms/meter.ts'
import type { Reserved, ReserveRequest, StoreReservations } from '../algorithms/reservations.ts'
import type { Exchange, Exchanging } from '../counting/site.ts'
import type { Question, Verdict } from '../store/contract.ts'
import type { CountedAhead } from './counted-ahead.ts'
import type { CentralAsks } from './link.ts'

/** The methods of a policy's meter that several requests in one step need. */
interface GroupedMeter extends Exchanging {
  readonly policy: MeterPolicy
  readonly exchange: Exchange
  closedTo(slot: number, cost: number, now: number): boolean
  barred(slot: number, cost: number, now: number): boolean
  ask(kind: Question['kind'], key: string, slot: number, units: number, at: number): Question
  begin(now: number): void
  follow(slot: number, question: Question, verdict: Verdict, left: number, now: number): void
  counted(cost: number): void
  fly(question: Question): void
  paused(slot: number, now: number): boolean
  unreadable(question: Question, now: number): void
  land(question: Question): void
  allowsAlone(slot: number, cost: number, now: number): boolean
  addAlone(slot: number, cost: number, now: number): void
}

/**
 * Sends one question to the store for several requests that wait for one key. It has the units of all of them, so the store counts all or
 * none. For buckets the store counts units ahead even if they don't fit yet. Its reply shows when each request does.
 */
export class Groups implements StoreReservations {
  readonly leased = false
  readonly #meter: GroupedMeter
  readonly #ahead: CountedAhead
  readonly #store: { readonly link: CentralAsks | undefined }

  constructor(meter: GroupedMeter, ahead: CountedAhead, store: { readonly link: CentralAsks | undefined }) {
    this.#meter = meter
    this.#ahead = ahead
    this.#store = store
  }

  needsStore(slot: number, cost: number, now: number): boolean {
    if (this.#store.link?.alone !== false || this.#meter.paused(slot, now)) return false
    return this.#ahead.counts(slot) ? !this.#meter.barred(slot, cost, now) : !this.#meter.closedTo(slot, cost, now)
  }

  levelAhead(slot: number, now: number): number | undefined {
    if (this.#store.link?.alone !== false || !this.#ahead.counts(slot) || this.#meter.paused(slot, now)) return undefined
    return this.#ahead.levelOf(slot, now)
  }

  isReturning(slot: number): boolean {
    return this.#ahead.takesBack(slot)
  }

  isFresh(slot: number, now: number): boolean {
    return this.#ahead.trusts(slot, now)
  }

  reserve(request: ReserveRequest, now: number): Promise<Reserved | undefined> {
    const { slot, key, costs, units, given, storeTimeout, most = Number.POSITIVE_INFINITY } = request
    const meter = this.#meter
    const { site } = meter
    const link = this.#store.link as CentralAsks
    const id = site.idOf(slot)
    const at = meter.exchange.time.at(now)
    const ahead = this.#ahead.counts(slot)
    const question = ahead ? this.#ahead.ask(id, slot, units, most, at) : meter.ask('take', id, slot, units, at)
    meter.begin(now)
    meter.fly(question)
    return new Promise((resolve) => {
      const asked = link.ask([question], storeTimeout, now, (verdicts) => {
        const then = link.clock.monotonic()
        meter.land(question)
        if (then >= meter.rollAt) meter.roll(then)
        // The key may have been removed, and its slot may belong to another key.
        const here = site.findId(id)
        const verdict = verdicts?.[0]
        if (verdict === undefined) {
          if (asked.unreadable) meter.unreadable(question, then)
          // Requests that came meanwhile may have set another limit.
          const own = here < 0 ? -1 : site.table.find(key)
          if (own >= 0 && (given !== undefined || site.limited)) site.limitTo(own, given)
          // Without the store, requests are counted one by one, and each counts once for every live process.
          let fit = 0
          let counted = 0
          for (const cost of costs) {
            if (here < 0 || !meter.allowsAlone(here, cost, then)) break
            meter.addAlone(here, cost, then)
            counted += cost
            fit++
          }
          const isPart = fit > 0 && fit < costs.length
          link.decided(asked, fit === costs.length, isPart ? { ...question, kind: 'add', units: counted } : undefined)
          meter.counted(counted)
          resolve(fit > 0 ? { count: fit, left: meter.remaining(here, then), resetAfterMs: meter.resetAfterMs(here, then) } : undefined)
          return
        }
        const { allowed, resetAfterMs } = verdict
        const level = (resetAfterMs * question.limit) / meter.policy.interval
        const left = ahead ? site.most(question.limit) - level : verdict.remaining
        // How long this process will use its own reservations.
        const reserved = allowed ? Math.max(verdict.delayMs, drainTime(-left, question.limit, meter.policy.interval)) : 0
        if (here >= 0 && ahead) this.#ahead.follow(here, level, at, allowed, then + reserved, then)
        else if (here >= 0) {
          // If even the first one does not fit, the meter closes the key for its cost, which saves the next round trip.
          const [cost = units] = costs
          const rejected = !allowed && left < cost ? { ...question, units: cost } : question
          meter.follow(here, rejected, verdict, left, then)
        }
        if (allowed) meter.counted(units)
        resolve({ count: allowed ? costs.length : 0, left, resetAfterMs })
      })
    })
  }
}
