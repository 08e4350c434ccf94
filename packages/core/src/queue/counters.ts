import type { Gate } from './gate.ts'
import { type Answer, Counter, counterId, type Line, opensIn, type Request } from './line.ts'
import { Schedule } from './schedule.ts'
import { Waits } from './waits.ts'

/** The counters with waiting requests, ordered by when they have capacity again, and the lines of each counter. */
export class Counters<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #all = new Map<string, Counter<D>>()
  /** The counters for which the time of new capacity is known. */
  readonly open: Schedule<Counter<D>> = new Schedule()
  /** The lines of all counters by their key, and those of requests that are all at the store. */
  readonly lines: Map<string, Line<D>> = new Map()
  readonly waits: Waits = new Waits()

  constructor(gate: Gate<D>) {
    this.#gate = gate
  }

  get all(): Iterable<Counter<D>> {
    return this.#all.values()
  }

  get empty(): boolean {
    return this.#all.size === 0
  }

  find(by: Pick<Answer, 'policy' | 'key'>): Counter<D> | undefined {
    return this.#all.get(counterId(by))
  }

  /** @param at when the counter has capacity, if it is new */
  locate(by: Pick<Answer, 'policy' | 'key'>, at: number): Counter<D> {
    const id = counterId(by)
    const found = this.#all.get(id)
    if (found !== undefined) return found
    const made = new Counter<D>(id, by.policy?.name ?? '')
    this.#all.set(id, made)
    this.open.set(made, at)
    return made
  }

  /** Adds a counter again if it was removed meanwhile. */
  keep(counter: Counter<D>, at: number): Counter<D> {
    const found = this.#all.get(counter.id)
    if (found !== undefined) return found
    this.#all.set(counter.id, counter)
    this.open.set(counter, at)
    return counter
  }

  /** The counter that has rejected a request. */
  closed(by: D, now: number): Counter<D> {
    const time = opensIn(by)
    const counter = this.locate(by, now + time)
    // The counter is new, so its requests begin with turns if other processes wait too.
    if (counter.lines.first === undefined && counter.asked === 0) counter.pace = this.#gate.turns(counter.policy, time)
    return counter
  }

  /** The first counter of a decision with waiting requests. */
  contended({ parts }: D): Counter<D> | undefined {
    if (this.empty) return undefined
    for (const part of parts) {
      const counter = this.find(part)
      if (counter !== undefined) return counter
    }
    return undefined
  }

  /** Puts a line behind the others of a counter. */
  put(line: Line<D>, counter: Counter<D>): void {
    counter.put(line)
    this.waits.add(counter.policy, line.size)
  }

  /** Removes a line from its counter. */
  takeOut(line: Line<D>): void {
    const { counter } = line
    if (counter === undefined) return
    counter.takeOut(line)
    this.waits.add(counter.policy, -line.size)
    this.tidy(counter)
  }

  /** Removes a request from its line. */
  leave(request: Request<D>): void {
    const { line } = request
    if (line === undefined) return
    request.line = undefined
    if (request.by !== undefined) line.ask(request, false)
    else line.remove(request)
    if (line.first === undefined) this.takeOut(line)
    line.size--
    this.waits.add(line.counter?.policy ?? '', -1)
    if (line.size === 0) this.lines.delete(line.key)
  }

  /** Moves a line to the end, so that the next key is served. */
  rotate(line: Line<D>, counter: Counter<D>): void {
    counter.lines.remove(line)
    counter.lines.push(line)
  }

  /** Removes a counter without waiting requests. */
  tidy(counter: Counter<D>): void {
    if (counter.lines.first !== undefined || counter.asked > 0) return
    this.open.remove(counter)
    this.#all.delete(counter.id)
  }
}
