import { MOST_TOGETHER, mostAsked, requestsAtOnce } from './call-size.ts'
import type { Counters } from './counters.ts'
import type { Gate, Together } from './gate.ts'
import { type Answer, type Counter, type Line, MOST_PAUSE, type Request } from './line.ts'
import { isLike } from './options.ts'
import { type Pace, Turns } from './turns.ts'
import type { Waiters } from './waiters.ts'

/** Tolerance for rounding errors in sums of units, relative to the cost. */
const ROUNDING = 1e-9
/** Milliseconds until the next try if the store did not grant a request in time. */
const ASK_AGAIN = 5

/** Handles requests that the store has rejected. */
interface Rejections<D extends Answer> {
  keeps(request: Request<D>, decision: D, now: number): boolean
  close(counter: Counter<D>, decision: D, now: number, asked: number): void
}

/** Requests in one call to the store, and the units of each. */
interface Group<D extends Answer> {
  readonly requests: Request<D>[]
  readonly costs: readonly number[]
  readonly together: Together<D> | undefined
}

/** The requests that may use a grant of another request. */
interface Stead<D extends Answer> {
  readonly together: Together<D> | undefined
  readonly urgent: boolean
}

/** Sends waiting requests to the store if the store decides them. If several processes wait for the same capacity, they take turns. */
export class Asking<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #counters: Counters<D>
  readonly #waiters: Waiters<D>
  readonly #rejections: Rejections<D>

  constructor(gate: Gate<D>, counters: Counters<D>, waiters: Waiters<D>, rejections: Rejections<D>) {
    this.#gate = gate
    this.#counters = counters
    this.#waiters = waiters
    this.#rejections = rejections
  }

  /** Whether more requests of a counter may be sent to the store. */
  mayAsk(counter: Counter<D>, { remaining }: D, together: Together<D> | undefined): boolean {
    if (together?.ahead !== undefined) return counter.asked === 0
    return counter.asked < mostAsked(demandOf(counter), together !== undefined, remaining)
  }

  /**
   * Whether a request must be sent now: its timeout comes before the replies about others, and its units fit by the counts of this process.
   */
  hurries({ asked }: Counter<D>, { key, wanted, at }: Request<D>, { ahead, fit, lead }: Together<D>, now: number): boolean {
    if (asked >= MOST_TOGETHER || at >= now + lead) return false
    if (ahead === undefined) return asked < fit
    return this.#gate.soonest(key, wanted.cost === undefined ? 1 : 0, wanted.cost ?? 0, wanted) === 0
  }

  /** When to request reservations: before the last reservation of the counter is used. */
  asksAt({ id }: Counter<D>, { ahead, lead }: Together<D>, now: number): number {
    return ahead?.later === true ? now + MOST_PAUSE : this.#waiters.lastOf(id) - lead
  }

  /**
   * When the next request of a counter may try. If several processes wait for the same moment, each of them takes turns. A request whose
   * turn comes after its timeout tries 1 ms before its timeout.
   */
  turnOf(counter: Counter<D>, request: Request<D>, now: number): number {
    const { pace } = counter
    if (pace !== undefined) {
      counter.pace = undefined
      this.#beginTurns(counter, pace, now)
    }
    return counter.turns === undefined ? now : Math.min(counter.turns.next, request.at - 1)
  }

  #beginTurns(counter: Counter<D>, pace: Pace, now: number): void {
    let requests = 0
    let since = now
    for (let line = counter.lines.first; line !== undefined; line = line.after) {
      requests += line.size
      since = Math.min(since, line.since)
    }
    if (since < now) (counter.turns ??= new Turns(this.#gate.random)).begin(requests, since, pace.speed, pace.most, now)
  }

  /** Collects the first request, and the requests that may go into the same call. */
  #gather(counter: Counter<D>, first: Request<D>, together: Together<D> | undefined): Group<D> {
    const { cost = 1, ahead } = together ?? {}
    const requests: Request<D>[] = []
    const costs: number[] = []
    const group: Group<D> = { requests, costs, together }
    let left =
      together === undefined ? 1 : (ahead?.unitsOf(counter.amount) ?? requestsAtOnce(demandOf(counter), together.part, together.fit) * cost)
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
      request.group = group
      request.by = counter.id
      // A call to the store has its own timeout.
      if (this.#gate.waits) this.#waiters.times.remove(request)
      counter.turns?.take()
      if (line.first === undefined) this.#counters.takeOut(line)
      else this.#counters.rotate(line, counter)
    }
    return group
  }

  /** Sends the first request to the store, and others in the same call. */
  ask(first: Request<D>, counter: Counter<D>, asked: number, together: Together<D> | undefined): void {
    const { key, wanted, at } = first
    const group = this.#gather(counter, first, together)
    const { requests, costs } = group
    const { length } = requests
    const answered = (take: (now: number) => void) => {
      const now = this.#gate.clock.monotonic()
      counter.asked -= length
      for (const request of requests) if (!request.settled) request.at = Math.min(request.at, this.#waiters.closesAt)
      take(now)
      if (counter.lines.first === undefined) this.#counters.tidy(counter)
      else if (counter.place < 0) this.#counters.open.set(counter, now)
      this.#waiters.changed()
    }
    const decided = (decisions: readonly D[]) =>
      answered((now) => {
        if (decisions[0]?.allowed === true) {
          counter.turns?.granted(asked)
          counter.got += decisions.length
          if (counter.pause !== undefined) counter.pause = undefined
          this.#share(group, decisions, counter, now)
          if (decisions.length === length) {
            for (const request of left(group)) if (this.#inTime(request, now)) this.#putBack(request, counter)
            return
          }
          // The call was decided without the store, and not all requests fit.
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
   * Distributes the granted units. If a request was cancelled or would be too late, the next request with the same cost uses its grant:
   * another request of the call, or the first request that waits behind them. If an earlier call was rejected, a request of it may wait
   * again. It came first, so it goes first.
   */
  #share(group: Group<D>, decisions: readonly D[], counter: Counter<D>, now: number): void {
    const { requests, costs, together } = group
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
          if (before.group !== group) spare.set(cost, left - 1)
          taker = before
          // This request uses the next grant, or the other request's call.
          if (before.group !== undefined) at++
          this.#exchange(request, before, now)
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

  /**
   * Finds a request of the same line that goes before this one and can use its grant.
   *
   * `urgent`: also finds requests of a higher priority, which may have come later.
   */
  #before(request: Request<D>, cost: number, { delayMs: delay }: D, { together, urgent }: Stead<D>, now: number): Request<D> | undefined {
    if (request.settled) return undefined
    return request.line?.findBefore(request, MOST_TOGETHER, ({ key, wanted, at }) => {
      if ((delay > 0 && now + delay > at) || (!urgent && wanted.priority !== request.wanted.priority)) return false
      return together === undefined ? isLike(wanted, request.wanted) : together.costBeside(key, wanted) === cost
    })
  }

  /**
   * Allows a request that is part of this call or of another one in flight. A later request replaces it there. It fails if the other call
   * would end after its timeout.
   */
  #exchange(later: Request<D>, first: Request<D>, now: number): void {
    const { group, line } = first
    if (group === undefined) return
    const { requests } = group
    const place = requests.indexOf(first)
    if (later.group === group) requests[requests.indexOf(later)] = first
    requests[place] = later
    line?.ask(first, false)
    first.group = undefined
    if (later.group === group) return
    later.group = group
    line?.ask(later, true)
    this.#inTime(later, now)
  }

  /** Whether a request of the call can use this grant. If the grant comes too late, the request fails. */
  #takes(request: Request<D>, { delayMs: delay }: D, now: number): boolean {
    if (request.settled) return false
    if (delay === 0 || now + delay <= request.at) return true
    this.#waiters.fail(request, 'timeout', delay)
    return false
  }

  /** The next waiting request, if it has the same cost and can use this grant. */
  #behind({ lines, asked }: Counter<D>, cost: number, { delayMs: delay }: D, together: Together<D>, now: number): Request<D> | undefined {
    // Requests at the store came before it.
    if (asked > 0) return undefined
    const next = lines.first?.first
    if (next === undefined || (delay > 0 && now + delay > next.at)) return undefined
    return together.costBeside(next.key, next.wanted) === cost ? next : undefined
  }

  /**
   * @param decision the rejection. If the requests did not fit together, the current counts, because they show whether fewer requests fit
   */
  #rejected(requests: readonly Request<D>[], by: Counter<D>, decision: D, now: number, asked: number): void {
    for (const request of requests) {
      // Fewer requests may fit, and the store rejected none of them alone. So it decides again, even after their timeout.
      if (decision.allowed || this.#rejections.keeps(request, decision, now)) this.#waitAgain(request, by, decision, now, asked)
    }
  }

  /** Whether a request that left its grant to another one may wait for a second call. Otherwise it fails, because that would be too late. */
  #inTime(request: Request<D>, now: number): boolean {
    if (now < request.at) return true
    this.#waiters.fail(request, 'timeout')
    return false
  }

  /** Handles a call whose first reservation would come too late. Requests that can't make their timeout fail. The others wait again. */
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
    // The reason may be unknown and may last, for example if the store can't read the key. So the pause grows.
    const pause = failed ? ASK_AGAIN : Math.max(ASK_AGAIN, Math.min(2 * (counter.pause ?? 0), MOST_PAUSE))
    counter.pause = pause
    if (counter.lines.first !== undefined) this.#counters.open.set(counter, now + pause)
  }

  /**
   * Puts a request back into its line.
   *
   * @param counter the line's counter, if the line has no other waiting request
   */
  #putBack(request: Request<D>, counter?: Counter<D>): Line<D> {
    const line = request.line as Line<D>
    line.ask(request, false)
    request.group = undefined
    request.by = undefined
    line.add(request)
    this.#waiters.times.set(request, request.at)
    if (line.counter === undefined && counter !== undefined) this.#counters.put(line, counter)
    return line
  }

  /**
   * Puts a request that the store rejected back into its line.
   *
   * @param by the counter of the call
   */
  #waitAgain(request: Request<D>, by: Counter<D>, decision: D, now: number, asked: number): void {
    const line = this.#putBack(request)
    // A counter with capacity for fewer requests did not reject the whole call.
    const counter = decision.allowed && by.policy !== '' ? this.#counters.keep(by, now) : this.#counters.locate(decision, now)
    const before = line.counter
    if (before !== counter) {
      // Before this reply, the line's counter was unknown.
      if (before !== undefined) counter.got += before.got
      this.#counters.takeOut(line)
      this.#counters.put(line, counter)
    }
    if (decision.allowed) this.#counters.open.set(counter, now)
    else if (this.#gate.mayAskAgain(request.key, request.wanted)) this.#counters.open.set(counter, now + ASK_AGAIN)
    else this.#rejections.close(counter, decision, now, asked)
  }
}

function demandOf<D extends Answer>({ asked, turns, gotBefore }: Counter<D>): Parameters<typeof requestsAtOnce>[0] {
  return { asked, granted: turns?.running === true ? gotBefore : undefined }
}

/**
 * For each cost, the number of requests that may stay without a grant because others go first. These are the requests behind the last one
 * that has reached its timeout.
 */
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

/** The requests of a call that have no grant yet. */
function left<D extends Answer>(group: Group<D>): readonly Request<D>[] {
  return group.requests.filter((request) => request.group === group && !request.settled && request.reservations === undefined)
}
