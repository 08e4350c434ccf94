import type { Counters } from './counters.ts'
import type { Gate } from './gate.ts'
import type { Answer, Counter, Line, Request } from './line.ts'
import type { Waiters } from './waiters.ts'

/** Requests of one counter that the store is asked for at once. */
const MOST_ASKED = 16
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

  /** Whether one request more of a counter may ask. */
  mayAsk({ asked }: Counter<D>, { remaining }: D): boolean {
    return asked < Math.max(1, Math.min(MOST_ASKED, remaining))
  }

  ask(request: Request<D>, line: Line<D>, counter: Counter<D>, asked: number): void {
    line.remove(request)
    request.asked = true
    request.by = counter.id
    // The question has a deadline of its own.
    this.#waiters.times.remove(request)
    counter.asked++
    counter.turns?.take()
    if (line.first === undefined) this.#counters.takeOut(line)
    else this.#counters.rotate(line, counter)
    const answered = (decision: D | undefined, error?: unknown) => {
      const now = this.#gate.clock.monotonic()
      counter.asked--
      if (decision?.allowed === true) counter.turns?.granted(asked)
      if (request.settled) {
        if (decision?.allowed === true) this.#gate.refund(decision)
      } else if (decision === undefined) {
        this.#waiters.break(request, error)
      } else if (decision.allowed) this.#waiters.admit(request, decision, now)
      else if (this.#refusals.keeps(request, decision, now)) this.#waitAgain(request, line, decision, now, asked)
      if (counter.lines.first === undefined) this.#counters.tidy(counter)
      else if (counter.place < 0) this.#counters.open.set(counter, now)
      this.#changed()
    }
    Promise.resolve(this.#gate.take(request.key, request.wanted)).then(answered, (error) => answered(undefined, error))
  }

  /** The store has refused it. */
  #waitAgain(request: Request<D>, line: Line<D>, decision: D, now: number, asked: number): void {
    request.asked = false
    request.by = undefined
    line.add(request)
    this.#waiters.times.set(request, request.at)
    const counter = this.#counters.locate(decision, now)
    if (line.counter !== counter) {
      this.#counters.takeOut(line)
      this.#counters.put(line, counter)
    }
    const again = this.#gate.mayAskAgain(request.key, request.wanted)
    if (again) this.#counters.open.set(counter, now + ASK_AGAIN)
    else this.#refusals.close(counter, decision, now, asked)
  }
}
