import type { Counters } from './counters.ts'
import type { Gate, Together } from './gate.ts'
import { type Answer, type Counter, type Line, MOST_PAUSE, type Request } from './line.ts'
import { isLike } from './options.ts'
import type { Waiters } from './waiters.ts'

/** Requests of one counter that the store is asked for at once. */
const MOST_ASKED = 16
/** As many where several can be asked for in one step, and the most in one step. */
const MOST_ALONE = 4
const MOST_TOGETHER = 100
/** The part of the last amount granted that a process requests at once: in small steps, processes share the capacity. */
const PARTS = 3
/** Units are summed up; part of them. */
const ROUNDING = 1e-9
/** Milliseconds after which the store is asked anew that has not granted in time. */
const ASK_AGAIN = 5

/** Decides what happens to a request that the store has rejected. */
interface Rejections<D extends Answer> {
  keeps(request: Request<D>, decision: D, now: number): boolean
  close(counter: Counter<D>, decision: D, now: number, asked: number): void
}

/** Requests that the store is asked for at once, and what each takes. */
interface Group<D extends Answer> {
  readonly requests: Request<D>[]
  readonly costs: readonly number[]
  readonly together: Together<D> | undefined
}

/** Which requests may go in the stead of one that was asked for. */
interface Stead<D extends Answer> {
  readonly together: Together<D> | undefined
  readonly urgent: boolean
}

/** Asks the store for requests that wait, where it has to decide. */
export class Asking<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #counters: Counters<D>
  readonly #waiters: Waiters<D>
  readonly #rejections: Rejections<D>
  readonly #changed: () => void

  /** @param changed is called after each answer */
  constructor(gate: Gate<D>, counters: Counters<D>, waiters: Waiters<D>, rejections: Rejections<D>, changed: () => void) {
    this.#gate = gate
    this.#counters = counters
    this.#waiters = waiters
    this.#rejections = rejections
    this.#changed = changed
  }

  /** Whether more requests of a counter may ask. */
  mayAsk({ asked, turns, gotBefore }: Counter<D>, { remaining }: D, together: Together<D> | undefined): boolean {
    if (together?.ahead !== undefined) return asked === 0
    // Where several can be asked for at once a few are alone, and the others when these are answered.
    const most = together !== undefined && (turns?.running !== true || gotBefore > 0) ? MOST_ALONE : MOST_ASKED
    return asked < Math.max(1, Math.min(most, remaining))
  }

  /** Whether a request can't wait for the answers about others, as its time would be over, and finds room as far as is known. */
  hurries({ asked }: Counter<D>, { key, wanted, at }: Request<D>, { ahead, fit, lead }: Together<D>, now: number): boolean {
    if (asked >= MOST_TOGETHER || at >= now + lead) return false
    if (ahead === undefined) return asked < fit
    return this.#gate.soonest(key, wanted.cost === undefined ? 1 : 0, wanted.cost ?? 0, wanted) === 0
  }

  /** When places are to be asked for: before the last one that the counter's requests have is used up. */
  asksAt({ id }: Counter<D>, { ahead, lead }: Together<D>, now: number): number {
    return ahead?.later === true ? now + MOST_PAUSE : this.#waiters.lastOf(id) - lead
  }

  /** How many requests of a counter that take the same are to be asked for in one step. */
  #atOnce({ asked, turns, gotBefore }: Counter<D>, { part, fit }: Together<D>): number {
    const most = turns?.running === true ? gotBefore / PARTS : part
    return Math.floor(Math.max(1, Math.min(most, fit - asked, MOST_TOGETHER)))
  }

  /** The first request, and as many as may be asked for with it. */
  #gather(counter: Counter<D>, first: Request<D>, together: Together<D> | undefined): Group<D> {
    const { cost = 1, ahead } = together ?? {}
    const requests: Request<D>[] = []
    const costs: number[] = []
    const group: Group<D> = { requests, costs, together }
    let left = together === undefined ? 1 : (ahead?.unitsOf(counter.amount) ?? this.#atOnce(counter, together) * cost)
    for (let line = counter.lines.first; line !== undefined; line = counter.lines.first) {
      const request = line.first as Request<D>
      const takes = request === first ? cost : together?.costBeside(request.key, request.wanted)
      if (takes === undefined || (request !== first && left <= takes * ROUNDING)) break
      left -= takes
      requests.push(request)
      costs.push(takes)
      counter.asked++
      line.remove(request)
      line.ask(request, true)
      request.asked = true
      request.group = group
      request.by = counter.id
      // A question to the store has a timeout of its own.
      if (this.#gate.waits) this.#waiters.times.remove(request)
      counter.turns?.take()
      if (line.first === undefined) this.#counters.takeOut(line)
      else this.#counters.rotate(line, counter)
    }
    return group
  }

  /** Asks for the request that goes first, and for others with it. */
  ask(first: Request<D>, counter: Counter<D>, asked: number, together: Together<D> | undefined): void {
    const { key, wanted, at } = first
    const group = this.#gather(counter, first, together)
    const { requests, costs } = group
    const { length } = requests
    const answered = (take: (now: number) => void) => {
      const now = this.#gate.clock.monotonic()
      counter.asked -= length
      for (const request of requests) {
        request.line?.ask(request, false)
        if (!request.settled) request.at = Math.min(request.at, this.#waiters.closesAt)
      }
      take(now)
      if (counter.lines.first === undefined) this.#counters.tidy(counter)
      else if (counter.place < 0) this.#counters.open.set(counter, now)
      this.#changed()
    }
    const decided = (decisions: readonly D[]) =>
      answered((now) => {
        if (decisions[0]?.allowed === true) {
          counter.turns?.granted(asked)
          counter.got += decisions.length
          if (counter.pause !== undefined) counter.pause = undefined
          this.#share(group, decisions, counter, now)
          if (decisions.length === length) {
            for (const request of left(group)) this.#putBack(request, counter)
            return
          }
          // It was decided without the store, by which not all of them fit.
        }
        if (together?.ahead !== undefined) this.#late(left(group), counter, now)
        else this.#rejected(left(group), counter, decisions[0]?.allowed === false ? decisions[0] : this.#gate.peek(key, wanted), now, asked)
      })
    const failed = (error: unknown) =>
      answered(() => {
        for (const request of requests) if (!request.settled) this.#waiters.break(request, error)
      })
    if (together !== undefined && (length > 1 || together.ahead !== undefined)) together.take(costs, at - asked).then(decided, failed)
    else Promise.resolve(this.#gate.take(key, wanted)).then((decision) => decided([decision]), failed)
  }

  /**
   * The store lets as many go. Of one that has gone, or would go too late, another one has the place that takes the same: the next of those that
   * were asked for, or who waits behind them. Who came before them, and waits again as the store rejected those it was asked for with, goes first.
   */
  #share({ requests, costs, together }: Group<D>, decisions: readonly D[], counter: Counter<D>, now: number): void {
    const next = new Map<number, number>()
    const spare = spareOf(requests, costs, now)
    for (const [place, decision] of decisions.entries()) {
      const cost = costs[place] as number
      let taker: Request<D> | undefined
      let at = next.get(cost) ?? 0
      for (; taker === undefined && at < requests.length; at++) {
        const request = requests[at] as Request<D>
        if (costs[at] !== cost) continue
        const left = now < request.at ? (spare.get(cost) ?? 0) : 0
        const before = this.#before(request, cost, decision, { together, urgent: left > 0 }, now)
        if (before !== undefined) {
          spare.set(cost, left - 1)
          taker = before
          // This one has its turn with the next place, or in the other's stead.
          if (before.group !== undefined) at++
          this.#exchange(request, before)
          break
        }
        if (this.#takes(request, decision, now)) taker = request
      }
      next.set(cost, at)
      taker ??= together && this.#behind(counter, cost, decision, together, now)
      if (taker === undefined) this.#gate.refund(decision)
      else this.#waiters.allow(taker, decision, now)
    }
  }

  /** One of the line of a request that goes before it and can use this place. `urgent`: also one of a higher priority, which may have come later. */
  #before(request: Request<D>, cost: number, { delayMs: delay }: D, { together, urgent }: Stead<D>, now: number): Request<D> | undefined {
    if (request.settled) return undefined
    return request.line?.findBefore(request, MOST_TOGETHER, ({ key, wanted, at }) => {
      if ((delay > 0 && now + delay > at) || (!urgent && wanted.priority !== request.wanted.priority)) return false
      return together === undefined ? isLike(wanted, request.wanted) : together.costBeside(key, wanted) === cost
    })
  }

  /** A request for which another question is in flight goes now: a later one takes its place in that question. */
  #exchange(later: Request<D>, first: Request<D>): void {
    const { group, line } = first
    if (group === undefined) return
    group.requests[group.requests.indexOf(first)] = later
    later.group = group
    first.group = undefined
    line?.ask(first, false)
    line?.ask(later, true)
  }

  /** Whether a request that was asked for can use this. */
  #takes(request: Request<D>, { delayMs: delay }: D, now: number): boolean {
    if (request.settled) return false
    if (delay === 0 || now + delay <= request.at) return true
    this.#waiters.fail(request, 'timeout', delay)
    return false
  }

  /** The request that waits next, if it takes as much and can use this. */
  #behind({ lines, asked }: Counter<D>, cost: number, { delayMs: delay }: D, together: Together<D>, now: number): Request<D> | undefined {
    // Others that are being asked for came before it.
    if (asked > 0) return undefined
    const next = lines.first?.first
    if (next === undefined || (delay > 0 && now + delay > next.at)) return undefined
    return together.costBeside(next.key, next.wanted) === cost ? next : undefined
  }

  /** @param decision the one that rejected them, or what is known now where they did not fit together: that says whether fewer do */
  #rejected(requests: readonly Request<D>[], by: Counter<D>, decision: D, now: number, asked: number): void {
    for (const request of requests) {
      if (decision.allowed || this.#rejections.keeps(request, decision, now)) this.#waitAgain(request, by, decision, now, asked)
    }
  }

  /** The first of them would go too late: now it is known which of them would not. */
  #late(requests: readonly Request<D>[], counter: Counter<D>, now: number): void {
    let failed = false
    for (const request of requests) {
      const { key, wanted } = request
      const soonest = this.#gate.soonest(key, wanted.cost === undefined ? 1 : 0, wanted.cost ?? 0, wanted)
      if (now + soonest > request.at) {
        failed = true
        this.#waiters.fail(request, 'timeout', soonest)
      } else {
        this.#putBack(request, counter)
      }
    }
    // Where nothing that is known says why, as of a key that the store can't read, that may last.
    const pause = failed ? ASK_AGAIN : Math.max(ASK_AGAIN, Math.min(2 * (counter.pause ?? 0), MOST_PAUSE))
    counter.pause = pause
    if (counter.lines.first !== undefined) this.#counters.open.set(counter, now + pause)
  }

  /**
   * It waits in its line again.
   *
   * @param counter that the line waits for where nobody waits in it
   */
  #putBack(request: Request<D>, counter?: Counter<D>): Line<D> {
    const line = request.line as Line<D>
    request.asked = false
    request.group = undefined
    request.by = undefined
    line.add(request)
    this.#waiters.times.set(request, request.at)
    if (line.counter === undefined && counter !== undefined) this.#counters.put(line, counter)
    return line
  }

  /**
   * The store has rejected it.
   *
   * @param by the counter that it was asked for
   */
  #waitAgain(request: Request<D>, by: Counter<D>, decision: D, now: number, asked: number): void {
    const line = this.#putBack(request)
    // A counter that has capacity for fewer of them is not the one that rejected all.
    const counter = decision.allowed && by.policy !== '' ? this.#counters.keep(by, now) : this.#counters.locate(decision, now)
    const before = line.counter
    if (before !== counter) {
      // Until now the store had not said yet what it waits for.
      if (before !== undefined) counter.got += before.got
      this.#counters.takeOut(line)
      this.#counters.put(line, counter)
    }
    if (decision.allowed) this.#counters.open.set(counter, now)
    else if (this.#gate.mayAskAgain(request.key, request.wanted)) this.#counters.open.set(counter, now + ASK_AGAIN)
    else this.#rejections.close(counter, decision, now, asked)
  }
}

/** For each cost how many of the requests may get nothing, as others go first: the last ones, unless they can't wait any longer. */
function spareOf<D extends Answer>(requests: readonly Request<D>[], costs: readonly number[], now: number): Map<number, number> {
  const spare = new Map<number, number>()
  const ended = new Set<number>()
  for (const [place, request] of [...requests.entries()].reverse()) {
    const cost = costs[place] as number
    if (now >= request.at && !request.settled) ended.add(cost)
    if (!ended.has(cost)) spare.set(cost, (spare.get(cost) ?? 0) + 1)
  }
  return spare
}

/** Those that were asked for, and have got nothing yet. */
function left<D extends Answer>(group: Group<D>): readonly Request<D>[] {
  return group.requests.filter((request) => request.group === group && !request.settled && request.reservations === undefined)
}
