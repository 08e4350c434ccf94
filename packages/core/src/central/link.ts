import type { Exchange } from '../counting/site.ts'
import { alternatives } from '../report/show.ts'
import type { Decide, Decider, Question, Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { Timeouts } from '../time/timeouts.ts'
import { Asked } from './asked.ts'
import { Backlog, PATIENCE, type Slice } from './backlog.ts'
import { checkVerdicts } from './check-verdicts.ts'
import { Flights } from './flights.ts'
import { questionsOf, unitsOf, verdictsOf } from './joined.ts'
import { corrected } from './late-settlement.ts'
import { Unsettled } from './unsettled.ts'
import { UsualTime } from './usual-time.ts'
import { worthUntil } from './worth.ts'

/** Milliseconds between probes while a reply of the store is overdue. */
const PROBE = 200
/** Requests that wait for the store's first reply at most. The oldest is dropped. */
const MOST_EARLY = 10_000

export interface LinkOptions {
  readonly clock: Clock
  readonly exchange: Exchange
  warn(code: 'WEIR_STORE_REPLY' | 'WEIR_WARN_STORE_SLOW', message: string): void
  /** Reports the units that were allowed without the store, of at most `most` keys. Returns the number of keys. */
  returned(now: number, most: number): number
}

/** The link, as meters see it. */
export type CentralAsks = Pick<CentralLink, 'clock' | 'alone' | 'ask' | 'decided'>

/**
 * Sends requests to the store, one round trip each. A request that gets no answer in time is decided without the store. As soon as the
 * store's decision is known, it is corrected, so that the store counts exactly the requests that were allowed.
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
  /** Requests that are sent as soon as the store has replied for the first time. */
  #early: Asked[] = []
  readonly #backlog: Backlog<Asked>
  readonly #unsettled = new Unsettled<Asked>()
  /** The slice of the backlog that is being sent. */
  #slice: Slice | undefined
  /** A reply of the store is overdue, or a request has failed. */
  #overdue = false
  /** Whether meters may have counted units without the store, even before this code was loaded. */
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
        const told = this.#unsettled.inPlaceOf([], () => returned(now, most))
        this.#slice = undefined
        if (told < most) this.#wasAlone = false
        return told
      },
    })
    this.#timeouts = new Timeouts(clock, (asked) => this.#expire(asked))
    this.#flights = new Flights((asked, others) => this.#send(asked, clock.monotonic(), others))
  }

  /** The connection to the store is open. */
  open(decider: Decider): void {
    this.#decider = decider
    // Requests have timed out so far because of the missing connection, not because of the store.
    this.#overdue = false
    this.answered()
  }

  /** Whether requests are decided without the store now. */
  get alone(): boolean {
    if (!this.#closed && !this.#exchange.storeDown && !this.#overdue && !this.#backlog.pending) return false
    this.#wasAlone = true
    return true
  }

  /** The opposite of `alone`, but now and then a request may try the store all the same, as a probe. */
  mayAsk(now: number): boolean {
    if (this.#backlog.pending && !this.#overdue) this.#backlog.tell(now)
    if (!this.alone) return true
    if (!this.#overdue || this.#exchange.storeDown || this.#closed || now < this.#probeAt) return false
    this.#probeAt = now + PROBE
    if (!this.#backlog.pending) return true
    // The pending reports serve as the probe.
    this.#backlog.tell(now, true)
    return false
  }

  partOf(key: string): number {
    return this.#decider?.partOf(key) ?? 0
  }

  /** Whether so many requests of a key are in flight that others wait, and are sent together if they need the same keys. */
  isCrowded(question: Question): boolean {
    return this.#flights.full(question)
  }

  /**
   * Sends a request to the store.
   *
   * @param storeTimeout milliseconds
   * @param done gets the verdicts, or undefined without an answer in time: then call `decided` with the decision
   */
  ask(questions: readonly Question[], storeTimeout: number, now: number, done: (verdicts: readonly Verdict[] | undefined) => void): Asked {
    const asked = new Asked(questions, storeTimeout, done)
    this.#send(asked, now)
    // Start the timer while it is on its way.
    this.#timeouts.add(asked, storeTimeout, now)
    return asked
  }

  /**
   * Takes the decision about a request that got no answer in time: whether its units were allowed.
   *
   * @param part the units that were allowed, if not all of them were
   */
  decided(asked: Asked, allowed: boolean, part?: Question): void {
    asked.allowed = allowed
    if (!asked.over && (allowed || asked.late !== undefined || asked.request === undefined)) this.#putRight(asked)
    if (part !== undefined) this.#tell(part, true)
  }

  /** Reports something to the store, once. */
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

  /** A report: no request waits for it, and it is already decided. */
  #toldOf(question: Question): Asked {
    const asked = new Asked([question], Number.POSITIVE_INFINITY, () => {})
    asked.settled = true
    asked.allowed = true
    this.#unsettled.add(asked)
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

  /**
   * Begins a flush. The returned function returns whether the store has everything that was reported so far, and the requests that were
   * decided without it.
   */
  flush(): () => boolean {
    const settled = this.#unsettled.flush()
    return () => !this.#backlog.pending && settled()
  }

  /** The store has answered a sync: it is up, and its time is known. */
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
      if (this.#early.length > MOST_EARLY) {
        const dropped = this.#early.shift() as Asked
        this.#unsettled.delete(dropped)
        this.#flights.end(dropped)
      }
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
    // Also if it is repeated: the store recognises it by its number, whatever it contains.
    if (asked.questions[0]?.kind === 'settle')
      asked.request = { ...asked.request, questions: asked.questions.map((one) => corrected(one, this.#exchange.time.at(now))) }
    for (const one of asked.members ?? []) {
      one.request = asked.request
      one.sent = now
    }
    // A waiting request has a storeTimeout of its own.
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

  /**
   * One request for the units of several, in the lane of the first. After the longest `storeTimeout` of its members, its answer may still
   * come within `PATIENCE`.
   */
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
    // The store has counted the original after all. So it is not repeated, but rejected units are still returned.
    if (allowed === true && asked.retries !== undefined)
      for (const one of asked.retries) if (one.of === 0 && this.#backlog.has(one)) this.#end(one)
    if (this.#overdue) {
      this.#overdue = false
      this.#backlog.tell(this.clock.monotonic())
    }
    if (verdicts === undefined) {
      // The store is up, so other requests may use it. It can't read this key, and reports about the key would not help.
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
      // A rejection also applies to equal requests that still wait.
      const same = allowed === false ? this.#flights.sameAs(asked) : undefined
      this.#told(asked, verdicts)
      if (same !== undefined) for (const one of same) this.#told(one, verdicts)
    }
  }

  /** Takes the store's answer to a request. */
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

  /** Takes the store's answer to a request for several others. If it is a rejection, they wait again until it is known how many fit. */
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
    // Its answer may still come, and would show the store's decision.
    if (asked.over || this.#closed) return
    this.#unsettled.add(asked)
    if (asked.joined === undefined) this.#timeouts.add(asked, PATIENCE, this.clock.monotonic())
  }

  /**
   * Whether it spent its time waiting for a lane of its key. Then the requests before it show whether a reply is overdue, and others may be
   * sent.
   */
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
    // For a report, `allowed` is set from the start.
    if (asked.allowed !== undefined && !asked.over && asked.late !== undefined) this.#putRight(asked)
  }

  /** Nothing is left to do for it. */
  #end(asked: Asked): void {
    const { next } = asked
    asked.over = true
    this.#unsettled.delete(asked)
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

  /** Makes the store's counts agree with the decision that was made without it. */
  #putRight(asked: Asked): void {
    const { request, questions, allowed, late, lane, joined } = asked
    this.#timeouts.remove(asked)
    if (request !== undefined && (late === null || late === undefined)) {
      // The store may or may not have counted it.
      if (asked.storeTimeout === Number.POSITIVE_INFINITY) {
        asked.request = { ...request, again: true }
        asked.again = true
        asked.late = undefined
        this.#backlog.keep(asked)
        return
      }
      if (joined === undefined) this.#retryAll(asked, [asked], lane)
      // An answer may still come, to all members together.
      else if (late === undefined) {
        if (allowed === true) this.#flights.owe(asked)
      } else {
        asked.over = true
        if (--joined.left === 0) this.#retryAll(joined, joined.members as readonly Asked[], joined.lane)
      }
      return
    }
    // First of all, before another request gets its lane and takes its units.
    const owed = allowed === true && late !== true
    this.#unsettled.inPlaceOf([asked], () => {
      if (owed) for (const question of questions) this.#tell({ ...question, kind: 'add' }, true)
      else if (!allowed && late === true) for (const question of questions) this.tell({ ...question, kind: 'give-back' })
    })
    this.#end(asked)
  }

  /** The effect of a request on the store is unknown. The allowed units are reported again, the others are returned. */
  #retryAll(asked: Asked, members: readonly Asked[], lane: number): void {
    asked.over = true
    asked.lane = -1
    const allowed = members.filter((one) => one.allowed === true)
    const others = members.filter((one) => one.allowed !== true)
    asked.retries = this.#unsettled.inPlaceOf(members, () =>
      asked.questions.flatMap((question, i) => this.#retry(question, asked, lane, unitsOf(allowed, i), unitsOf(others, i))),
    )
    // The repeated reports owe the units now.
    for (const one of members) {
      this.#unsettled.delete(one)
      this.#flights.end(one)
    }
  }

  /**
   * Keeps the reports about one question of an unanswered request, in its lane. Rejected units are returned first: as long as the lane has
   * counted nothing else, the store knows whether it counted the request.
   */
  #retry(question: Question, { request }: Asked, lane: number, units: number, others: number): Asked[] {
    const { sequence } = request as Decide
    const counts = question.kind === 'take' && question.units > 0
    let first: Asked | undefined
    if (counts && units > 0) {
      first = this.#toldOf({ ...question, kind: 'add', units })
      // It counts whether or not it fits, but only once.
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
