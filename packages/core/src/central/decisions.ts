import type { Asking, AskingHost, Keys, Opening } from '../decide/asking.ts'
import { isDecidedByStore } from '../decide/coordination.ts'
import { reject } from '../decide/decide-one.ts'
import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Outcome, RunningCell } from '../decide/outcome.ts'
import { boundedOnce } from '../keys/key-text.ts'
import type { Question, Verdict } from '../store/contract.ts'
import type { Asked } from './asked.ts'
import type { CentralLink } from './link.ts'
import type { CentralMeter } from './meter.ts'

/** A request's question to the store for one policy. */
interface Part {
  readonly limiter: Limiter
  readonly meter: CentralMeter
  readonly key: string
  /** The key's slot when the request came. The key may have another one by now. */
  readonly slot: number
  readonly cost: number
  /** The limit that the request came with: other requests may have changed it meanwhile. */
  readonly given: number | undefined
  readonly question: Question
  /** The cell that counts it. */
  readonly cell: RunningCell
  verdict: Verdict | undefined
  /** Whether it fits, by the verdict or without one. */
  fits: boolean
}

/** Parts that are decided in one step. */
interface Group {
  readonly parts: readonly Part[]
  asked: Asked | undefined
}

/**
 * Decides requests if some of their policies need the store. The other policies decide and count first: if one rejects, no round trip is
 * needed. If the store rejects, their units are returned.
 */
export class CentralDecisions implements Asking {
  readonly #host: AskingHost
  readonly #link: CentralLink

  constructor(host: AskingHost, link: CentralLink) {
    this.#host = host
    this.#link = link
  }

  decide(keys: Keys, costs: readonly number[], places: readonly number[], applied: number, opens?: Opening): Decision | Promise<Decision> {
    const host = this.#host
    const { limiters } = host
    const now = host.clock.monotonic()
    const one = applied === 1 ? this.#decideOne(keys, costs, places[0] as number, now, opens) : undefined
    if (one !== undefined) return one
    const asked: Part[] = []
    const watched: Part[] = []
    // Keys that are decided here: those of policies that don't need the store, and all keys if a policy has rejected.
    const here: (string | undefined)[] = new Array(limiters.length).fill(undefined)
    const all: (string | undefined)[] = new Array(limiters.length).fill(undefined)
    let others = 0
    let rejected = false
    for (let at = 0; at < applied; at++) {
      const i = places[at] as number
      const given = keys[i]
      if (given === undefined) continue
      const limiter = limiters[i] as Limiter
      if (now >= limiter.meter.rollAt) host.roll(limiter, now)
      const key = boundedOnce(given)
      const cost = host.costOf(costs[i], i)
      const slot = limiter.locate(key, now)
      const { dryRun } = limiter.policy
      if (slot >= 0 && isCentral(limiter)) {
        const meter = limiter.meter as CentralMeter
        if (meter.closedTo(slot, cost, now)) {
          // Also if the store is down: a closed key stays closed.
          if (!dryRun) rejected = true
        } else if (!meter.paused(slot, now) && this.#link.mayAsk(now)) {
          const part = ofRequest(limiter, meter, slot, key, cost, now, dryRun ? undefined : opens)
          if (dryRun) watched.push(part)
          else {
            asked.push(part)
            all[i] = key
          }
          continue
        }
      }
      others++
      here[i] = all[i] = key
      if (!dryRun && (slot < 0 ? limiter.overflow === 'reject' : !limiter.meter.allows(slot, cost, now))) rejected = true
    }
    if (rejected || asked.length === 0)
      return this.#withWatched(this.#decideHere(rejected ? all : here, costs, others, watched), watched, now)
    const held = others > 0 ? host.decide(here, costs, true) : undefined
    if (held?.allowed === false) return this.#withWatched(held, watched, now)
    return this.#ask(asked, held, watched, now)
  }

  /** As `decide`, for a request to one policy that must wait for the store. Otherwise undefined. */
  #decideOne(keys: Keys, costs: readonly number[], place: number, now: number, opens: Opening | undefined): Promise<Decision> | undefined {
    const { limiters, clock } = this.#host
    const limiter = limiters[place] as Limiter
    const given = keys[place]
    if (given === undefined || !isCentral(limiter) || limiter.policy.dryRun) return undefined
    if (now >= limiter.meter.rollAt) this.#host.roll(limiter, now)
    const key = boundedOnce(given)
    const cost = this.#host.costOf(costs[place], place)
    const slot = limiter.locate(key, now)
    const meter = limiter.meter as CentralMeter
    if (slot < 0 || meter.closedTo(slot, cost, now) || meter.paused(slot, now) || !this.#link.mayAsk(now)) return undefined
    const part = ofRequest(limiter, meter, slot, key, cost, now, opens)
    return new Promise((resolve, reject) => {
      meter.fly(part.question)
      const asked = this.#link.ask([part.question], limiter.policy.storeTimeout, now, (verdicts) => {
        part.verdict = verdicts?.[0]
        meter.land(part.question)
        try {
          const then = clock.monotonic()
          this.#findFit(part, then)
          if (verdicts === undefined) {
            if (asked.unreadable) meter.unreadable(part.question, then)
            this.#link.decided(asked, part.fits)
          }
          resolve(this.#partOf(part, part.fits, then))
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  #decideHere(keys: Keys, costs: readonly number[], others: number, watched: readonly Part[]): Decision | undefined {
    // If no policy applies, the throttler decides.
    return others === 0 && watched.length > 0 ? undefined : this.#host.decide(keys, costs, true)
  }

  /** Adds the policies with `dryRun`: their parts show the counts so far, and no request waits for the store's answer. */
  #withWatched(decision: Decision | undefined, watched: readonly Part[], now: number): Decision {
    if (watched.length === 0) return decision as Decision
    const parts = [...(decision?.parts ?? [])] as PolicyDecision[]
    for (const part of watched) parts.push(this.#watch(part, decision?.allowed !== false, now))
    return this.#inOrder(parts)
  }

  #watch({ limiter, meter, key, cost, question }: Part, allowed: boolean, now: number): PolicyDecision {
    const slot = limiter.locate(key, now)
    const fits = meter.allows(slot, cost, now)
    if (allowed) {
      this.#link.ask([question], limiter.policy.storeTimeout, now, (verdicts) => {
        const [verdict] = verdicts ?? []
        const later = this.#host.clock.monotonic()
        const at = limiter.locate(key)
        if (verdict === undefined || at < 0) return
        meter.follow(at, question, verdict, verdict.remaining, later)
        if (verdict.allowed) meter.counted(cost)
        else reject(limiter, at, key, cost, later)
      }).allowed = true
    }
    const after = Math.ceil(meter.resetAfterMs(slot, now))
    const left = Math.max(0, meter.remaining(slot, now) - (fits && allowed ? cost : 0))
    return new PolicyDecision(limiter.outcome(slot, fits ? 'ok' : 'limit'), key, left, after, fits && allowed ? cost : 0)
  }

  #ask(parts: readonly Part[], held: Decision | undefined, watched: readonly Part[], now: number): Promise<Decision> {
    const groups = this.#grouped(parts)
    return new Promise((resolve, reject) => {
      let left = groups.length
      for (const group of groups) {
        const storeTimeout = Math.min(...group.parts.map(({ limiter }) => limiter.policy.storeTimeout))
        const questions = group.parts.map(({ question }) => question)
        for (const { meter, question } of group.parts) meter.fly(question)
        group.asked = this.#link.ask(questions, storeTimeout, now, (verdicts) => {
          for (const [i, part] of group.parts.entries()) part.verdict = verdicts?.[i]
          if (--left > 0) return
          try {
            resolve(this.#settle(groups, held, watched))
          } catch (error) {
            reject(error)
          }
        })
      }
    })
  }

  /** Groups parts whose keys lie in the same part of the store: a group is counted all or none. */
  #grouped(parts: readonly Part[]): readonly Group[] {
    if (parts.length === 1) return [{ parts, asked: undefined }]
    // At a crowded key each part waits for a lane with the requests for this key alone, because few requests share several keys.
    if (parts.some(({ question }) => this.#link.isCrowded(question))) return parts.map((part) => ({ parts: [part], asked: undefined }))
    const byPart = new Map<number, Part[]>()
    for (const part of parts) {
      const place = this.#link.partOf(part.question.key)
      const group = byPart.get(place)
      if (group === undefined) byPart.set(place, [part])
      else group.push(part)
    }
    return [...byPart.values()].map((group) => ({ parts: group, asked: undefined }))
  }

  /** All answers have arrived, or are overdue. */
  #settle(groups: readonly Group[], held: Decision | undefined, watched: readonly Part[]): Decision {
    const now = this.#host.clock.monotonic()
    let allowed = true
    for (const { parts } of groups) {
      for (const part of parts) {
        part.meter.land(part.question)
        this.#findFit(part, now)
        if (!part.fits) allowed = false
      }
    }
    const decided: PolicyDecision[] = []
    for (const { parts, asked } of groups) {
      const unanswered = parts[0]?.verdict === undefined
      if (unanswered && asked !== undefined) {
        if (asked.unreadable) this.#findUnreadable(parts, now)
        this.#link.decided(asked, allowed)
      }
      // The store has counted this group, but another one did not fit.
      if (!unanswered && !allowed && parts.every(({ fits }) => fits)) {
        for (const { question } of parts) this.#link.tell({ ...question, kind: 'give-back' })
      }
      for (const part of parts) decided.push(this.#partOf(part, allowed, now))
    }
    const heldParts = (held?.parts ?? []) as readonly PolicyDecision[]
    decided.push(...(allowed ? heldParts : heldParts.map((part) => this.#putBack(part, now))))
    for (const part of watched) decided.push(this.#watch(part, allowed, now))
    return this.#inOrder(decided)
  }

  /** The store could not read one of several keys. Each is looked up alone, to find out which one. */
  #findUnreadable(parts: readonly Part[], now: number): void {
    for (const { limiter, meter, question } of parts) {
      if (parts.length === 1) meter.unreadable(question, now)
      else {
        const look = this.#link.ask([{ ...question, units: 0 }], limiter.policy.storeTimeout, now, (verdicts) => {
          if (verdicts === undefined) this.#link.decided(look, false)
          if (look.unreadable) meter.unreadable(question, this.#host.clock.monotonic())
        })
      }
    }
  }

  /** Sets whether a request fits whose answer has arrived, or is overdue. */
  #findFit(part: Part, now: number): void {
    const { limiter, meter, key, cost, given, verdict } = part
    if (now >= meter.rollAt) this.#host.roll(limiter, now)
    this.#host.giveAgain(limiter, key, given)
    if (verdict !== undefined) part.fits = verdict.allowed
    else {
      const slot = slotOf(part)
      part.fits = slot < 0 || meter.allowsAlone(slot, cost, now)
    }
  }

  /** Returns the units that a policy counted without the store. */
  #putBack(part: PolicyDecision, now: number): PolicyDecision {
    const limiter = this.#host.limiters.find(({ policy }) => policy.id === part.policy?.id)
    if (limiter === undefined || !(part.cost > 0)) return part
    if (now >= limiter.meter.rollAt) this.#host.roll(limiter, now)
    limiter.meter.refund(part.key, part.ordinal, part.cost, now)
    // The request was rejected in the end.
    limiter.meter.allowed -= part.cost
    const slot = limiter.table.find(part.key)
    if (slot < 0) return part
    return new PolicyDecision(part.outcome, part.key, limiter.meter.remaining(slot, now), part.resetAfterMs, 0)
  }

  /** The decision of one policy, once it is decided whether the request is allowed. */
  #partOf(part: Part, allowed: boolean, now: number): PolicyDecision {
    const { limiter, meter, key, cost, question, cell, verdict, fits } = part
    const slot = slotOf(part)
    if (verdict !== undefined) {
      const left = Math.min(limiter.most(question.limit), verdict.remaining + (fits && !allowed ? cost : 0))
      if (slot >= 0) meter.follow(slot, question, verdict, left, now)
      if (!fits) return reject(limiter, slot, key, cost, now)
      if (allowed) meter.counted(cost)
      return new PolicyDecision(limitedTo(question.limit, cell.passed), key, left, Math.ceil(verdict.resetAfterMs), allowed ? cost : 0)
    }
    if (!fits) return reject(limiter, slot, key, cost, now)
    if (allowed && slot >= 0) meter.addAlone(slot, cost, now)
    if (allowed) meter.counted(cost)
    const left = slot < 0 ? 0 : meter.remaining(slot, now)
    const after = slot < 0 ? 0 : Math.ceil(meter.resetAfterMs(slot, now))
    return new PolicyDecision(limitedTo(question.limit, cell.passed), key, left, after, allowed ? cost : 0)
  }

  #inOrder(parts: PolicyDecision[]): Decision {
    if (parts.length === 1) return parts[0] as PolicyDecision
    const order = new Map(this.#host.limiters.map(({ policy }, i) => [policy.id, i]))
    const place = ({ policy }: PolicyDecision) => (policy === undefined ? 0 : (order.get(policy.id) ?? 0))
    return combined(parts.sort((a, b) => place(a) - place(b)))
  }
}

/** Makes the question about a request. */
function ofRequest(
  limiter: Limiter,
  meter: CentralMeter,
  slot: number,
  key: string,
  cost: number,
  now: number,
  opens: Opening | undefined,
): Part {
  const asked = meter.ask('take', limiter.idOf(slot), slot, cost, meter.exchange.time.at(now))
  const reservation = opens && meter.holds.opening(key, opens, cost, asked.at)
  const question = reservation === undefined ? asked : { ...asked, reservation }
  if (reservation !== undefined) opens?.opened.set(limiter.policy.id, { key, held: reservation })
  meter.begin(now)
  return { limiter, meter, key, slot, cost, given: limiter.givenTo(key), question, cell: limiter.cell, verdict: undefined, fits: true }
}

/** The slot of a request's key now, usually without a look-up. */
function slotOf({ limiter, key, slot }: Part): number {
  return limiter.table.keys[slot] === key ? slot : limiter.locate(key)
}

function isCentral({ policy }: Limiter): boolean {
  return isDecidedByStore(policy)
}

/** The outcome with the limit of a key that has its own. */
function limitedTo(limit: number, outcome: Outcome): Outcome {
  return outcome.limit === limit ? outcome : { ...outcome, limit }
}
