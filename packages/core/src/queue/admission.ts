import type { Asking } from './asking.ts'
import type { Counters } from './counters.ts'
import type { Gate } from './gate.ts'
import { type Answer, type Counter, counterId, type Line, opensIn, type Request } from './line.ts'
import type { Waiters } from './waiters.ts'

/** Allows the requests that wait for a counter, as far as the counter has capacity. */
export class Admission<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #counters: Counters<D>
  readonly #waiters: Waiters<D>
  /** Undefined without a store. */
  readonly #asking: Asking<D> | undefined

  constructor(gate: Gate<D>, counters: Counters<D>, waiters: Waiters<D>, asking: typeof Asking | undefined) {
    this.#gate = gate
    this.#counters = counters
    this.#waiters = waiters
    this.#asking = asking && new asking<D>(gate, counters, waiters, this)
  }

  /**
   * Allows requests while the counter has capacity: one request of a key, then one of the next key.
   *
   * @param most the most requests to check
   * @param joins whether a request has just come, because then more may come in the same moment
   * @returns the number of checked requests
   */
  serve(counter: Counter<D>, now: number, most: number, joins = false): number {
    const gate = this.#gate
    const asking = this.#asking
    const { open } = this.#counters
    let looked = 0
    for (let line = counter.lines.first; line !== undefined && looked < most; line = counter.lines.first) {
      looked++
      const request = line.first as Request<D>
      const { key, wanted } = request
      const seen = gate.peek(key, wanted)
      const together = gate.waits || gate.reservesAhead(counter.policy) ? gate.together(key, wanted) : undefined
      const ahead = together?.ahead
      // A request whose units fit is allowed without the store if the other processes get its count in time.
      const mustAsk = ahead !== undefined && (gate.waits || !seen.allowed || gate.pause(key, wanted, false) !== undefined)
      if (asking !== undefined && (mustAsk || (gate.waits && (seen.allowed || gate.asks(key, wanted))))) {
        if (ahead !== undefined && counterId(ahead.by) !== counter.id) {
          const its = this.#counters.locate(ahead.by, now)
          this.#move(line, its)
          return looked + this.serve(its, now, most, joins)
        }
        const isAhead = together !== undefined && ahead !== undefined
        const turn = isAhead ? asking.asksAt(counter, together, now) : asking.turnOf(counter, request, now)
        if (turn > now) {
          open.set(counter, turn)
          return looked
        }
        if (!asking.mayAsk(counter, seen, together)) {
          const hurries = together !== undefined && asking.hurries(counter, request, together, now)
          // Requests that come in the same moment go into the same call to the store.
          if (hurries && joins) open.set(counter, now)
          // The next reply of the store continues with this counter.
          else if (!hurries) open.remove(counter)
          if (!hurries || joins) return looked
        }
        asking.ask(request, counter, now, together)
        continue
      }
      const turn = (seen.allowed ? asking?.turnOf(counter, request, now) : undefined) ?? now
      if (turn > now) {
        open.set(counter, turn)
        return looked
      }
      const pause = seen.allowed ? gate.pause(key, wanted, counter.turns?.running === true) : undefined
      if (pause !== undefined) {
        if (counterId(pause.by) !== counter.id) {
          this.#move(line, this.#counters.locate(pause.by, now + pause.time))
          continue
        }
        open.set(counter, now + pause.time)
        return looked
      }
      const decision = seen.allowed ? (gate.take(key, wanted) as D) : seen
      if (decision.allowed) {
        counter.turns?.take()
        counter.turns?.granted(now)
        this.#waiters.allow(request, decision, now)
        if (line.counter === counter) this.#counters.rotate(line, counter)
        continue
      }
      if (this.keeps(request, decision, now) && counterId(decision) !== counter.id) {
        this.#move(line, this.#counters.closed(decision, now))
      } else if (!request.settled) {
        this.close(counter, decision, now)
        return looked
      }
    }
    if (counter.lines.first !== undefined) open.set(counter, now)
    else {
      // Replies of the store continue with this counter.
      open.remove(counter)
      this.#counters.tidy(counter)
    }
    return looked
  }

  #move(line: Line<D>, to: Counter<D>): void {
    this.#counters.takeOut(line)
    this.#counters.put(line, to)
  }

  /**
   * Marks a counter as full.
   *
   * @param asked the time when the rejected request was sent to the store
   */
  close(counter: Counter<D>, decision: D, now: number, asked: number = now): void {
    const time = Math.max(1, opensIn(decision))
    if (counter.pace === undefined) {
      // If the counter is full only for a moment, its turns continue, because the store's clock may be behind.
      counter.pace = this.#gate.turns(counter.policy, time)
      if (counter.pace !== undefined) counter.turns?.end(asked)
    }
    if (counter.got > 0) {
      counter.gotBefore = counter.got
      counter.got = 0
    }
    this.#counters.open.set(counter, now + time)
  }

  /** Whether a rejected request may continue to wait. Otherwise it fails at once, because it can't make its timeout. */
  keeps(request: Request<D>, decision: D, now: number): boolean {
    request.rejected = decision
    const { retryAfterMs } = decision
    if (now + retryAfterMs <= request.at) return true
    this.#waiters.fail(request, retryAfterMs === Number.POSITIVE_INFINITY ? 'never-fits' : 'timeout')
    return false
  }
}
