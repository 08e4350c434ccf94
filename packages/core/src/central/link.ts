import type { Exchange } from '../algorithms/shared/site.ts'
import type { Decide, Decider, Question, Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { Backlog, type Slice } from './backlog.ts'
import { checkVerdicts } from './check-verdicts.ts'
import { type Awaited, Deadlines, type Line } from './deadlines.ts'

/** While the store owes an overdue answer it is asked this often whether it is back, in milliseconds. */
const PROBE = 200
/** Requests that wait for the store's first answer at most; the oldest goes. */
const MOST_EARLY = 10_000
/** Weight of the last round trip in the usual one, and round trips after which that is known. */
const WEIGHT = 0.05
const ENOUGH = 20
/** A usual round trip that takes a larger part of the deadline leaves too little for those that are not. */
const PART = 5

export interface LinkOptions {
  readonly clock: Clock
  readonly exchange: Exchange
  warn(code: 'WEIR_STORE_REPLY' | 'WEIR_STORE_SLOW', message: string): void
  /** Tells of what was admitted without the store, of so many keys at most; returns how many it were. */
  returned(now: number, most: number): number
}

/** A request to the store. */
export class Asked implements Awaited {
  readonly request: Decide
  readonly deadline: number
  readonly done: (verdicts: readonly Verdict[] | undefined) => void
  sent = 0
  /** It was answered, or is no longer waited for. */
  settled = false
  /** Whether its units were admitted without the store, once that is known. */
  admitted: boolean | undefined = undefined
  /** What was admitted of it, where that is a part: the store counts all that it was asked for, or nothing. */
  part: Question | undefined = undefined
  /** What the store said after the deadline. `null`: nothing, its answer is lost. */
  late: boolean | null | undefined = undefined
  again = false
  /** What it is told with that the store may not have heard. */
  slice: Slice | undefined = undefined
  endsAt = 0
  earlier: this | undefined = undefined
  later: this | undefined = undefined
  line: Line<this> | undefined = undefined

  constructor(request: Decide, deadline: number, done: (verdicts: readonly Verdict[] | undefined) => void) {
    this.request = request
    this.deadline = deadline
    this.done = done
  }
}

/** What asks the store, as meters see it. */
export type CentralAsks = Pick<CentralLink, 'clock' | 'alone' | 'ask' | 'decided'>

/**
 * Asks the store about requests, one round trip each. A request that gets no answer in time is decided without the store; and what
 * the store did about it, or did not, is put right as soon as it is known, so that what was admitted counts there, and nothing else.
 */
export class CentralLink {
  readonly clock: Clock
  readonly #exchange: Exchange
  readonly #warn: LinkOptions['warn']
  readonly #deadlines: Deadlines<Asked>
  #decider: Decider | undefined
  #closed = false
  #sequence = 0
  /** Sent as soon as the store has answered for the first time. */
  #early: Asked[] = []
  readonly #backlog: Backlog<Asked>
  /** Of what is being told from the backlog. */
  #slice: Slice | undefined
  /** The store owes an answer for too long, or has refused one. */
  #overdue = false
  #wasAlone = false
  #probeAt = 0
  #usual = 0
  #answers = 0
  #warned = false

  constructor({ clock, exchange, warn, returned }: LinkOptions) {
    this.clock = clock
    this.#exchange = exchange
    this.#warn = warn
    const link = this
    this.#backlog = new Backlog(clock, {
      get open() {
        return link.#decider !== undefined && !link.#closed && !link.#exchange.degraded
      },
      get overdue() {
        return link.#overdue
      },
      send: (asked, slice, now) => {
        asked.slice = slice
        asked.settled = true
        this.#ask(this.#decider as Decider, asked, now)
      },
      sendOthers: (most, slice, now) => {
        if (this.#overdue || !this.#wasAlone) return 0
        this.#slice = slice
        const told = returned(now, most)
        this.#slice = undefined
        if (told < most) this.#wasAlone = false
        return told
      },
    })
    this.#deadlines = new Deadlines(clock, (asked) => this.#expire(asked))
  }

  /** The way to the store is open. */
  open(decider: Decider): void {
    this.#decider = decider
    this.answered()
  }

  /** Whether requests are decided about without the store now. */
  get alone(): boolean {
    if (!this.#closed && !this.#exchange.degraded && !this.#overdue && !this.#backlog.pending) return false
    this.#wasAlone = true
    return true
  }

  /** As `alone`, the other way round, but now and then a request may ask all the same, to find out. */
  mayAsk(now: number): boolean {
    if (this.#backlog.pending && !this.#overdue) this.#backlog.tell(now)
    if (!this.alone) return true
    if (!this.#overdue || this.#exchange.degraded || this.#closed || now < this.#probeAt) return false
    this.#probeAt = now + PROBE
    if (!this.#backlog.pending) return true
    // What is to be told first finds out as well.
    this.#backlog.tell(now, true)
    return false
  }

  partOf(key: string): number {
    return this.#decider?.partOf(key) ?? 0
  }

  /**
   * Asks the store.
   *
   * @param deadline milliseconds
   * @param done is told the verdicts, or undefined when there was no answer in time: then `decided` must be told what became of it
   */
  ask(questions: readonly Question[], deadline: number, now: number, done: (verdicts: readonly Verdict[] | undefined) => void): Asked {
    const asked = new Asked(this.#requestOf(questions, now), deadline, done)
    this.#send(asked, now)
    // While it is on its way.
    this.#deadlines.add(asked, deadline, now)
    return asked
  }

  /**
   * What became of a request that got no answer in time: whether its units were admitted.
   *
   * @param part of one that was not: what was admitted of it
   */
  decided(asked: Asked, admitted: boolean, part?: Question): void {
    asked.admitted = admitted
    asked.part = part
    if (asked.late !== undefined) this.#putRight(asked)
  }

  /** Tells the store something; once. */
  tell(question: Question): void {
    const now = this.clock.monotonic()
    const asked = new Asked(this.#requestOf([question], now), Number.POSITIVE_INFINITY, () => {})
    // There is nobody who waits for it, or could decide otherwise.
    asked.settled = true
    asked.admitted = true
    if (this.#closed) return
    asked.slice = this.#slice
    if (this.#exchange.degraded || (this.#backlog.pending && this.#slice === undefined)) {
      this.#backlog.keep(asked)
      this.#backlog.tell(now)
    } else this.#send(asked, now)
  }

  look(question: Question, deadline: number): Promise<Verdict | undefined> {
    const now = this.clock.monotonic()
    if (this.#closed || this.#exchange.degraded) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const asked = this.ask([{ ...question, at: this.#exchange.time.at(now) }], deadline, now, (verdicts) => {
        resolve(verdicts?.[0])
        if (verdicts === undefined) asked.admitted = false
      })
    })
  }

  /** The store has answered an exchange: it is there, and its time is known. */
  answered(): void {
    if (this.#decider === undefined || this.#exchange.degraded) return
    const now = this.clock.monotonic()
    this.#backlog.tell(now, true)
    for (const asked of this.#early.splice(0)) if (!asked.settled || asked.admitted === true) this.#send(asked, now)
  }

  close(): void {
    this.#closed = true
    this.#deadlines.close()
    for (const asked of this.#early.splice(0)) if (!asked.settled) this.#settle(asked)
  }

  #requestOf(questions: readonly Question[], now: number): Decide {
    const { time } = this.#exchange
    const sequence = ++this.#sequence
    return time.stepped(now) ? { sequence, time: time.at(now), stepped: true, questions } : { sequence, time: time.at(now), questions }
  }

  #send(asked: Asked, now: number): void {
    if (this.#decider === undefined || !this.#exchange.time.measured) {
      this.#early.push(asked)
      if (this.#early.length > MOST_EARLY) this.#early.shift()
      return
    }
    this.#ask(this.#decider, asked, now)
  }

  #ask(decider: Decider, asked: Asked, now: number): void {
    asked.sent = now
    const request = asked.again ? { ...asked.request, again: true as const } : asked.request
    let answer: Promise<readonly Verdict[] | undefined>
    try {
      answer = decider.decide(request)
    } catch (error) {
      answer = Promise.reject(error)
    }
    answer.then(
      (verdicts) => {
        this.#answered(asked, verdicts)
        if (asked.slice !== undefined) this.#backlog.ended(asked.slice)
      },
      () => {
        this.#failed(asked)
        if (asked.slice !== undefined) this.#backlog.ended(asked.slice)
      },
    )
  }

  #answered(asked: Asked, given: unknown): void {
    const verdicts = checkVerdicts(given, asked.request.questions)
    if (this.#overdue) {
      this.#overdue = false
      this.#backlog.tell(this.clock.monotonic())
    }
    if (verdicts === undefined) {
      // It is there, so others may ask; about this key it can't say anything, and nothing is to be gained by telling it.
      this.#warn('WEIR_STORE_REPLY', 'The store answered something that can not be used when it was asked about a request.')
      if (!asked.settled) this.#settle(asked)
      return
    }
    if (!asked.settled) {
      this.#deadlines.remove(asked)
      asked.settled = true
      asked.done(verdicts)
      this.#measure(asked)
      return
    }
    this.#measure(asked)
    asked.late = verdicts.every(({ allowed }) => allowed)
    if (asked.admitted !== undefined) this.#putRight(asked)
  }

  #failed(asked: Asked): void {
    asked.late = null
    this.#owes()
    if (!asked.settled) this.#settle(asked)
    else if (asked.admitted !== undefined) this.#putRight(asked)
  }

  #expire(asked: Asked): void {
    this.#owes()
    this.#settle(asked)
  }

  #owes(): void {
    if (this.#overdue) return
    this.#overdue = true
    this.#probeAt = this.clock.monotonic() + PROBE
  }

  #settle(asked: Asked): void {
    this.#deadlines.remove(asked)
    asked.settled = true
    asked.done(undefined)
  }

  /** What was decided without the store and what it did, or may have done, must come to the same. */
  #putRight({ request, admitted, part, late, again }: Asked): void {
    const { sequence, questions } = request
    if (late === null) {
      // Whether it was done is not known.
      for (const question of questions) {
        if (admitted === true) this.#keepAdded(request, question)
        else if (!again) this.#keepBack(question, sequence)
      }
    } else if (late && !admitted) for (const question of questions) this.tell({ ...question, kind: 'give-back' })
    else if (!late && admitted) for (const question of questions) this.tell({ ...question, kind: 'add' })
    // Last, or all would seem to have been counted.
    if (part !== undefined) this.tell(part)
  }

  /** The same request for one question, as one that counts whether or not it fits. */
  #keepAdded(request: Decide, question: Question): void {
    const added = question.kind === 'take' ? { ...question, kind: 'add' as const } : question
    const kept = new Asked({ ...request, questions: [added] }, Number.POSITIVE_INFINITY, () => {})
    kept.admitted = true
    kept.again = true
    this.#backlog.keep(kept)
  }

  #keepBack(question: Question, of: number): void {
    if (question.kind !== 'take' || question.units === 0) return
    const request = { ...this.#requestOf([{ ...question, kind: 'give-back' as const }], this.clock.monotonic()), of }
    const asked = new Asked(request, Number.POSITIVE_INFINITY, () => {})
    asked.admitted = true
    this.#backlog.keep(asked)
  }

  #measure({ sent, deadline }: Asked): void {
    const took = this.clock.monotonic() - sent
    this.#answers++
    this.#usual += (took - this.#usual) * Math.max(WEIGHT, 1 / this.#answers)
    if (this.#warned || this.#answers < ENOUGH || !(this.#usual > deadline / PART)) return
    this.#warned = true
    const what = `The store usually takes ${Math.ceil(this.#usual)} ms to decide about a request, more than a fifth of the deadline of ${deadline} ms`
    const then = 'requests that take longer are decided about by "degraded". Give a longer "deadline", or move the store nearer'
    this.#warn('WEIR_STORE_SLOW', `${what}: ${then}.`)
  }
}
