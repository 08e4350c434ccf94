import type { Counters } from './counters.ts'
import type { Gate, Together } from './gate.ts'
import type { Answer, Counter, Line, Request } from './line.ts'
import type { Waiters } from './waiters.ts'

/** Requests of one counter that the store is asked for at once. */
const MOST_ASKED = 16
/** As many where several can be asked for in one step, and the most in one step. */
const MOST_ALONE = 4
const MOST_TOGETHER = 100
/** Of what a node got the last time there was room it asks for such a part at once: so nodes take it in small steps beside each other. */
const PARTS = 3
/** Milliseconds after which the store is asked anew that has not granted in time. */
const ASK_AGAIN = 5

/** What becomes of a request that the store has refused. */
interface Refusals<D extends Answer> {
  keeps(request: Request<D>, decision: D, now: number): boolean
  close(counter: Counter<D>, decision: D, now: number, asked: number): void
}

/** Asks the store for requests that wait, where it has to decide. */
export class Asking<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #counters: Counters<D>
  readonly #waiters: Waiters<D>
  readonly #refusals: Refusals<D>
  readonly #changed: () => void

  /** @param changed is called after each answer */
  constructor(gate: Gate<D>, counters: Counters<D>, waiters: Waiters<D>, refusals: Refusals<D>, changed: () => void) {
    this.#gate = gate
    this.#counters = counters
    this.#waiters = waiters
    this.#refusals = refusals
    this.#changed = changed
  }

  /**
   * Whether more requests of a counter may ask.
   *
   * @param together whether several could in one step: then a few are asked for alone at once, and the others when these are answered
   */
  mayAsk({ asked, turns, gotBefore }: Counter<D>, { remaining }: D, together: boolean): boolean {
    const most = together && (turns?.running !== true || gotBefore > 0) ? MOST_ALONE : MOST_ASKED
    return asked < Math.max(1, Math.min(most, remaining))
  }

  /** How many requests of a counter are to be asked for in one step. */
  atOnce({ lines, asked, turns, gotBefore }: Counter<D>, { part, fit }: Together<D>): number {
    // The keys that wait for it take turns.
    if (lines.first !== lines.last) return 1
    const most = turns?.running === true ? gotBefore / PARTS : part
    return Math.floor(Math.max(1, Math.min(most, fit - asked, MOST_TOGETHER)))
  }

  /** @param most requests that want the same as the first one are asked for with it */
  ask(line: Line<D>, counter: Counter<D>, asked: number, most: number, together: Together<D> | undefined): void {
    const first = line.first as Request<D>
    const { key, wanted } = first
    const requests: Request<D>[] = []
    for (let next: Request<D> | undefined = first; next !== undefined && requests.length < most; next = line.first) {
      if (next.wanted.cost !== wanted.cost || next.wanted.limit !== wanted.limit || next.wanted.asked !== wanted.asked) break
      requests.push(next)
      line.remove(next)
      next.asked = true
      next.by = counter.id
      // The question has a deadline of its own.
      this.#waiters.times.remove(next)
      counter.turns?.take()
    }
    const { length } = requests
    counter.asked += length
    if (line.first === undefined) this.#counters.takeOut(line)
    else this.#counters.rotate(line, counter)
    const answered = (decisions: readonly D[], error?: unknown) => {
      const now = this.#gate.clock.monotonic()
      counter.asked -= length
      if (decisions[0]?.allowed === true) {
        counter.turns?.granted(asked)
        counter.got += length
      }
      // Those that did not fit together: what is known now says whether fewer do.
      const none = decisions.length === 0 && error === undefined ? this.#gate.peek(key, wanted) : undefined
      for (const [place, request] of requests.entries()) {
        const decision = decisions[place] ?? none
        if (request.settled) {
          if (none === undefined && decision?.allowed === true) this.#gate.refund(decision)
        } else if (decision === undefined) {
          this.#waiters.break(request, error)
        } else if (none === undefined && decision.allowed) this.#waiters.admit(request, decision, now)
        else if (decision.allowed || this.#refusals.keeps(request, decision, now)) this.#waitAgain(request, line, decision, now, asked)
      }
      if (counter.lines.first === undefined) this.#counters.tidy(counter)
      else if (counter.place < 0) this.#counters.open.set(counter, now)
      this.#changed()
    }
    const failed = (error: unknown) => answered([], error)
    if (length > 1 && together !== undefined) together.take(length).then(answered, failed)
    else Promise.resolve(this.#gate.take(key, wanted)).then((decision) => answered([decision]), failed)
  }

  /** The store has refused it. */
  #waitAgain(request: Request<D>, line: Line<D>, decision: D, now: number, asked: number): void {
    request.asked = false
    request.by = undefined
    line.add(request)
    this.#waiters.times.set(request, request.at)
    const counter = this.#counters.locate(decision, now)
    const before = line.counter
    if (before !== counter) {
      // Until now the store had not said yet what it waits for.
      if (before !== undefined) counter.got += before.got
      this.#counters.takeOut(line)
      this.#counters.put(line, counter)
    }
    if (decision.allowed) this.#counters.open.set(counter, now)
    else if (this.#gate.mayAskAgain(request.key, request.wanted)) this.#counters.open.set(counter, now + ASK_AGAIN)
    else this.#refusals.close(counter, decision, now, asked)
  }
}
