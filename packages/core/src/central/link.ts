import type { Exchange } from '../counting/site.ts'
import { alternatives } from '../report/show.ts'
import type { Decide, Decider, Question, Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { Asked } from './asked.ts'
import { Backlog, PATIENCE, type Slice } from './backlog.ts'
import { checkVerdicts } from './check-verdicts.ts'
import { Flights } from './flights.ts'
import { questionsOf, unitsOf, verdictsOf } from './joined.ts'
import { Timeouts } from './timeouts.ts'
import { UsualTime } from './usual-time.ts'
import { worthUntil } from './worth.ts'

/** While the store owes an overdue answer it is asked this often whether it is back, in milliseconds. */
const PROBE = 200
/** Requests that wait for the store's first answer at most; the oldest goes. */
const MOST_EARLY = 10_000

export interface LinkOptions {
  readonly clock: Clock
  readonly exchange: Exchange
  warn(code: 'WEIR_STORE_REPLY' | 'WEIR_WARN_STORE_SLOW', message: string): void
  /** Tells of what was allowed without the store, of so many keys at most; returns how many it were. */
  returned(now: number, most: number): number
}

/** What asks the store, as meters see it. */
export type CentralAsks = Pick<CentralLink, 'clock' | 'alone' | 'ask' | 'decided'>

/**
 * Asks the store about requests, one round trip each. A request that gets no answer in time is decided without the store; and what
 * the store did about it, or did not, is put right as soon as it is known, so that what was allowed counts there, and nothing else.
 */
export class CentralLink {
  readonly clock: Clock
  readonly #exchange: Exchange
  readonly #warn: LinkOptions['warn']
  readonly #timeouts: Timeouts<Asked>
  #decider: Decider | undefined
  #closed = false
  readonly #flights: Flights<Asked>
  #sequence = 0
  /** Sent as soon as the store has answered for the first time. */
  #early: Asked[] = []
  readonly #backlog: Backlog<Asked>
  /** Of what is being told from the backlog. */
  #slice: Slice | undefined
  /** The store owes an answer for too long, or has rejected one. */
  #overdue = false
  /** Whether meters may have counted units without the store: also before this was loaded. */
  #wasAlone = true
  #probeAt = 0
  readonly #usual: UsualTime

  constructor({ clock, exchange, warn, returned }: LinkOptions) {
    this.clock = clock
    this.#exchange = exchange
    this.#warn = warn
    this.#usual = new UsualTime((message) => warn('WEIR_WARN_STORE_SLOW', message))
    const link = this
    this.#backlog = new Backlog(clock, {
      get open() {
        return link.#decider !== undefined && !link.#closed && !link.#exchange.storeDown
      },
      get overdue() {
        return link.#overdue
      },
      send: (asked, slice, now) => {
        asked.slice = slice
        this.#send(asked, now)
      },
      isOver: ({ questions }, now) => questions.every((question) => worthUntil(question) <= this.#exchange.time.at(now)),
      drop: (asked) => this.#end(asked),
      sendOthers: (most, slice, now) => {
        if (this.#overdue || !this.#wasAlone) return 0
        this.#slice = slice
        const told = returned(now, most)
        this.#slice = undefined
        if (told < most) this.#wasAlone = false
        return told
      },
    })
    this.#timeouts = new Timeouts(clock, (asked) => this.#expire(asked))
    this.#flights = new Flights((asked, others) => this.#send(asked, clock.monotonic(), others))
  }

  /** The way to the store is open. */
  open(decider: Decider): void {
    this.#decider = decider
    // The store itself has not owed anything so far.
    this.#overdue = false
    this.answered()
  }

  /** Whether requests are decided about without the store now. */
  get alone(): boolean {
    if (!this.#closed && !this.#exchange.storeDown && !this.#overdue && !this.#backlog.pending) return false
    this.#wasAlone = true
    return true
  }

  /** As `alone`, the other way round, but now and then a request may ask all the same, to find out. */
  mayAsk(now: number): boolean {
    if (this.#backlog.pending && !this.#overdue) this.#backlog.tell(now)
    if (!this.alone) return true
    if (!this.#overdue || this.#exchange.storeDown || this.#closed || now < this.#probeAt) return false
    this.#probeAt = now + PROBE
    if (!this.#backlog.pending) return true
    // What is to be told first finds out as well.
    this.#backlog.tell(now, true)
    return false
  }

  partOf(key: string): number {
    return this.#decider?.partOf(key) ?? 0
  }

  /** Whether so many requests of a key are under way that others wait, and go together with those that ask for the same keys. */
  isCrowded(question: Question): boolean {
    return this.#flights.full(question)
  }

  /**
   * Asks the store.
   *
   * @param storeTimeout milliseconds
   * @param done is told the verdicts, or undefined when there was no answer in time: then `decided` must be told what became of it
   */
  ask(questions: readonly Question[], storeTimeout: number, now: number, done: (verdicts: readonly Verdict[] | undefined) => void): Asked {
    const asked = new Asked(questions, storeTimeout, done)
    this.#send(asked, now)
    // While it is on its way.
    this.#timeouts.add(asked, storeTimeout, now)
    return asked
  }

  /**
   * What became of a request that got no answer in time: whether its units were allowed.
   *
   * @param part of one that was not: what was allowed of it
   */
  decided(asked: Asked, allowed: boolean, part?: Question): void {
    asked.allowed = allowed
    if (!asked.over && (allowed || asked.late !== undefined || asked.request === undefined)) this.#putRight(asked)
    if (part !== undefined) this.#tell(part, true)
  }

  /** Tells the store something; once. */
  tell(question: Question): void {
    this.#tell(question, this.#slice !== undefined)
  }

  /** @param owed whether its units were allowed without the store */
  #tell(question: Question, owed: boolean): void {
    if (this.#closed) return
    const now = this.clock.monotonic()
    const asked = this.#toldOf(question)
    if (owed) this.#flights.owe(asked)
    asked.slice = this.#slice
    if (this.#exchange.storeDown || (this.#backlog.pending && this.#slice === undefined)) {
      this.#backlog.keep(asked)
      this.#backlog.tell(now)
    } else this.#send(asked, now)
  }

  /** There is nobody who waits for it, or could decide otherwise. */
  #toldOf(question: Question): Asked {
    const asked = new Asked([question], Number.POSITIVE_INFINITY, () => {})
    asked.settled = true
    asked.allowed = true
    return asked
  }

  look(question: Question, storeTimeout: number): Promise<Verdict | undefined> {
    const now = this.clock.monotonic()
    if (this.#closed || this.#exchange.storeDown) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const asked = this.ask([{ ...question, at: this.#exchange.time.at(now) }], storeTimeout, now, (verdicts) => {
        resolve(verdicts?.[0])
        if (verdicts === undefined) this.decided(asked, false)
      })
    })
  }

  /** The store has answered an exchange: it is there, and its time is known. */
  answered(): void {
    if (this.#decider === undefined || this.#exchange.storeDown) return
    const now = this.clock.monotonic()
    this.#backlog.tell(now, true)
    for (const asked of this.#early.splice(0)) this.#send(asked, now)
  }

  close(): void {
    this.#closed = true
    this.#timeouts.close()
    for (const asked of this.#early.splice(0)) if (!asked.settled) this.#settle(asked)
  }

  /** Whether anything can be sent: the store has answered for the first time. */
  get #open(): boolean {
    return this.#decider !== undefined && this.#exchange.time.measured
  }

  #send(asked: Asked, now: number, others: readonly Asked[] = []): void {
    // It was decided without the store while it waited to be sent.
    if (asked.gone) return
    if (others.length > 0) this.#ask(this.#decider as Decider, this.#join([asked, ...others]), now)
    else if (!this.#open) {
      this.#early.push(asked)
      if (this.#early.length > MOST_EARLY) this.#flights.end(this.#early.shift() as Asked)
    } else if (asked.lane >= 0 || asked.looks || this.#flights.begin(asked)) this.#ask(this.#decider as Decider, asked, now)
  }

  #ask(decider: Decider, asked: Asked, now: number): void {
    asked.sent = now
    const { slice, lane, of } = asked
    if (asked.request === undefined) {
      const { time } = this.#exchange
      asked.request = {
        sequence: ++this.#sequence,
        ...(lane > 0 && { lane }),
        ...(of > 0 && { of }),
        time: time.at(now),
        ...(time.stepped(now) && { stepped: true }),
        questions: asked.questions,
      }
    }
    for (const one of asked.members ?? []) {
      one.request = asked.request
      one.sent = now
    }
    // Whoever waits has a storeTimeout of its own.
    if (asked.settled) this.#timeouts.add(asked, PATIENCE, now)
    else if (asked.members !== undefined) this.#timeouts.add(asked, asked.storeTimeout, now)
    let answer: Promise<readonly Verdict[] | undefined>
    try {
      answer = decider.decide(asked.request)
    } catch (error) {
      answer = Promise.reject(error)
    }
    answer.then(
      (verdicts) => {
        this.#answered(asked, verdicts)
        if (slice !== undefined) this.#backlog.ended(slice)
      },
      () => {
        this.#failed(asked)
        if (slice !== undefined) this.#backlog.ended(slice)
      },
    )
  }

  /** One request for all units of several, in the lane of the first. Once each of them has waited long enough, its answer is waited for as long as that of any. */
  #join(members: readonly Asked[]): Asked {
    const [first] = members as [Asked]
    const joined = new Asked(questionsOf(members), Math.max(...members.map(({ storeTimeout }) => storeTimeout)) + PATIENCE, () => {})
    joined.members = members
    joined.left = members.length
    joined.lane = first.lane
    first.lane = -1
    for (const one of members) one.joined = joined
    return joined
  }

  #answered(asked: Asked, given: unknown): void {
    const verdicts = checkVerdicts(given, asked.questions)
    const allowed = verdicts?.every((verdict) => verdict.allowed)
    // What it was to be told again it has done; what is to be given back of it is still to be.
    if (allowed === true && asked.retries !== undefined)
      for (const one of asked.retries) if (one.of === 0 && this.#backlog.has(one)) this.#end(one)
    if (this.#overdue) {
      this.#overdue = false
      this.#backlog.tell(this.clock.monotonic())
    }
    if (verdicts === undefined) {
      // It is there, so others may ask; about this key it can't say anything, and nothing is to be gained by telling it.
      const names = [...new Set(asked.questions.map(({ policy }) => policy.id.replace(/^(?:[^:]*:){4}/, '')))]
      this.#warn(
        'WEIR_STORE_REPLY',
        `Invalid reply from the store for policy ${alternatives(names, 'and')}: verdicts are missing or out of range. This request used "failMode". Does another program write to these keys?`,
      )
      for (const one of asked.members ?? [asked]) {
        if (one.over && one !== asked) continue
        const waits = !one.settled
        one.unreadable = true
        this.#end(one)
        if (waits) this.#settle(one)
      }
      this.#end(asked)
      return
    }
    if (asked.over) return
    this.#usual.took(asked.members?.[0] ?? asked, this.clock.monotonic())
    if (asked.members !== undefined) this.#share(asked, asked.members, verdicts)
    else {
      // What the store rejects it rejects those that wait for the same, too.
      const same = allowed === false ? this.#flights.sameAs(asked) : undefined
      this.#told(asked, verdicts)
      if (same !== undefined) for (const one of same) this.#told(one, verdicts)
    }
  }

  /** The store has answered a request. */
  #told(asked: Asked, verdicts: readonly Verdict[]): void {
    if (!asked.settled) {
      asked.settled = true
      this.#end(asked)
      asked.done(verdicts)
      return
    }
    asked.late = verdicts.every(({ allowed }) => allowed)
    if (asked.again || asked.storeTimeout === Number.POSITIVE_INFINITY) this.#end(asked)
    else if (asked.allowed !== undefined) this.#putRight(asked)
  }

  /** The store has answered a request for several others: all of them count, or as many as it has room for are to be found. */
  #share(joined: Asked, members: readonly Asked[], verdicts: readonly Verdict[]): void {
    if (verdicts.every(({ allowed }) => allowed)) {
      for (const [i, each] of verdictsOf(members, verdicts).entries()) this.#told(members[i] as Asked, each)
    } else {
      const waiting = members.filter(({ settled }) => !settled)
      for (const one of members) if (one.settled) this.#told(one, verdicts)
      for (const one of waiting) one.joined = one.request = undefined
      this.#flights.again(waiting, joined.lane)
    }
    this.#end(joined)
  }

  #failed(asked: Asked): void {
    if (asked.over) return
    this.#owes()
    if (asked.members !== undefined) {
      asked.over = true
      this.#timeouts.remove(asked)
    }
    for (const one of asked.members ?? [asked]) {
      one.late = null
      if (!one.settled) this.#settle(one)
      else if (one.allowed !== undefined) this.#putRight(one)
    }
  }

  #expire(asked: Asked): void {
    if (asked.settled || asked.members !== undefined) {
      this.#failed(asked)
      return
    }
    if (!this.#waitedForLane(asked)) this.#owes()
    this.#settle(asked)
    // It may still be answered, and then what the store did is known.
    if (!asked.over && !this.#closed && asked.joined === undefined) this.#timeouts.add(asked, PATIENCE, this.clock.monotonic())
  }

  /** Whether it spent its time waiting for a lane of its key. Then those before it tell whether the store owes an answer, and others may ask. */
  #waitedForLane({ request, sent, storeTimeout }: Asked): boolean {
    // Timers count whole milliseconds.
    return request === undefined ? this.#open : this.clock.monotonic() - sent < storeTimeout - 1
  }

  #owes(): void {
    if (this.#overdue) return
    this.#overdue = true
    this.#probeAt = this.clock.monotonic() + PROBE
  }

  #settle(asked: Asked): void {
    this.#timeouts.remove(asked)
    asked.settled = true
    asked.done(undefined)
    // Of one that nobody waits for it is known before.
    if (asked.allowed !== undefined && !asked.over && asked.late !== undefined) this.#putRight(asked)
  }

  /** Nothing more is to be done about it. */
  #end(asked: Asked): void {
    const { next } = asked
    asked.over = true
    this.#backlog.delete(asked)
    this.#timeouts.remove(asked)
    if (next !== undefined) {
      asked.next = undefined
      next.lane = asked.lane
      asked.lane = -1
      this.#backlog.keep(next)
      this.#backlog.tell(this.clock.monotonic())
    }
    this.#flights.end(asked)
  }

  /** What was decided without the store and what it did, or may have done, must come to the same. */
  #putRight(asked: Asked): void {
    const { request, questions, allowed, late, lane, joined } = asked
    this.#timeouts.remove(asked)
    if (request !== undefined && (late === null || late === undefined)) {
      // Whether it was done is not known.
      if (asked.storeTimeout === Number.POSITIVE_INFINITY) {
        asked.request = { ...request, again: true }
        asked.again = true
        asked.late = undefined
        this.#backlog.keep(asked)
        return
      }
      if (joined === undefined) this.#retryAll(asked, [asked], lane)
      // The answer may still come, which is one for all of them.
      else if (late === undefined) {
        if (allowed === true) this.#flights.owe(asked)
      } else {
        asked.over = true
        if (--joined.left === 0) this.#retryAll(joined, joined.members as readonly Asked[], joined.lane)
      }
      return
    }
    // Before its lane is another one's, or more would be asked for.
    const owed = allowed === true && late !== true
    if (owed) for (const question of questions) this.#tell({ ...question, kind: 'add' }, true)
    else if (!allowed && late === true) for (const question of questions) this.tell({ ...question, kind: 'give-back' })
    this.#end(asked)
  }

  /** Nobody knows what the store did with a request: it is told again what was allowed of it, and what was not. */
  #retryAll(asked: Asked, members: readonly Asked[], lane: number): void {
    asked.over = true
    asked.lane = -1
    const allowed = members.filter((one) => one.allowed === true)
    const others = members.filter((one) => one.allowed !== true)
    asked.retries = asked.questions.flatMap((question, i) => {
      return this.#retry(question, asked, lane, unitsOf(allowed, i), unitsOf(others, i))
    })
    // What is told again is owed now.
    for (const one of members) this.#flights.end(one)
  }

  /**
   * Keeps what is told again of one question of a request without an answer; it goes on in its lane. What was not allowed comes back first: as long as
   * nothing else was counted in the lane, the store knows whether the request was.
   */
  #retry(question: Question, { request }: Asked, lane: number, units: number, others: number): Asked[] {
    const { sequence } = request as Decide
    const counts = question.kind === 'take' && question.units > 0
    let first: Asked | undefined
    if (counts && units > 0) {
      first = this.#toldOf({ ...question, kind: 'add', units })
      // Counts whether or not it fits, and once.
      first.request = { ...(request as Decide), questions: first.questions, again: true }
      first.again = true
      this.#flights.owe(first)
    }
    if (counts && others > 0) {
      const back = this.#toldOf({ ...question, kind: 'give-back', units: others })
      back.of = sequence
      back.next = first
      first = back
    }
    if (first === undefined) {
      const nothing = this.#toldOf(question)
      nothing.lane = lane
      this.#end(nothing)
      return []
    }
    first.lane = lane
    this.#backlog.keep(first)
    return [first]
  }
}
