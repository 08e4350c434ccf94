import type { Decide, Question, Verdict } from '../store/contract.ts'
import type { Awaited, Line } from '../time/timeouts.ts'
import type { Slice } from './backlog.ts'
import type { Flying } from './flights.ts'

/** A request to the store. */
export class Asked implements Awaited, Flying {
  readonly questions: readonly Question[]
  /** Milliseconds. Infinity for a report, because no request waits for its reply. */
  readonly storeTimeout: number
  readonly done: (verdicts: readonly Verdict[] | undefined) => void
  /** The request as it was sent. Undefined until then. */
  request: Decide | undefined = undefined
  sent = 0
  lane = -1
  owed = false
  /** It was answered, or no request waits for it any more. */
  settled = false
  /** Whether its units were allowed without the store, once that is decided. */
  allowed: boolean | undefined = undefined
  /** The store's answer after the storeTimeout. `null`: the answer is lost. */
  late: boolean | null | undefined = undefined
  /** Whether it is finished. */
  over = false
  again = false
  /** The store answered, but could not read the key's state. */
  unreadable = false
  /** The number of the unanswered request whose units it returns, or 0. */
  of = 0
  /** The requests that are sent in its place because its answer is lost. */
  retries: readonly Asked[] | undefined = undefined
  /** The requests that it sends together, and how many of them may still be corrected with it. */
  members: readonly Asked[] | undefined = undefined
  left = 0
  /** The request that sends it together with others. */
  joined: Asked | undefined = undefined
  /** The report that follows in its lane. */
  next: Asked | undefined = undefined
  /** The slice of the backlog with which it is sent. */
  slice: Slice | undefined = undefined
  endsAt = 0
  earlier: this | undefined = undefined
  later: this | undefined = undefined
  line: Line<this> | undefined = undefined

  constructor(questions: readonly Question[], storeTimeout: number, done: (verdicts: readonly Verdict[] | undefined) => void) {
    this.questions = questions
    this.storeTimeout = storeTimeout
    this.done = done
  }

  /** No request waits for it any more, and it was never sent. */
  get gone(): boolean {
    return this.settled && this.storeTimeout < Number.POSITIVE_INFINITY
  }

  /** Whether it only reads. */
  get looks(): boolean {
    const [question] = this.questions
    return question !== undefined && question.kind === 'take' && question.units === 0
  }
}
