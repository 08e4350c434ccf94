import type { Decide, Question, Verdict } from '../store/contract.ts'
import type { Slice } from './backlog.ts'
import type { Flying } from './flights.ts'
import type { Awaited, Line } from './timeouts.ts'

/** A request to the store. */
export class Asked implements Awaited, Flying {
  readonly questions: readonly Question[]
  /** Milliseconds; infinity of what nobody waits for. */
  readonly storeTimeout: number
  readonly done: (verdicts: readonly Verdict[] | undefined) => void
  /** As it was sent; undefined until then. */
  request: Decide | undefined = undefined
  sent = 0
  lane = -1
  owed = false
  /** It was answered, or is no longer waited for. */
  settled = false
  /** Whether its units were allowed without the store, once that is known. */
  allowed: boolean | undefined = undefined
  /** The answer of the store after the storeTimeout. `null`: its answer is lost. */
  late: boolean | null | undefined = undefined
  /** Nothing more is to be done about it. */
  over = false
  again = false
  /** The store answered, but could say nothing. */
  unreadable = false
  /** The number of the request without an answer whose units it gives back; else 0. */
  of = 0
  /** The question that is sent in its place because its answer is lost. */
  retries: readonly Asked[] | undefined = undefined
  /** The requests that it asks for together, and how many of them may still be put right with it. */
  members: readonly Asked[] | undefined = undefined
  left = 0
  /** The question that asks for it, together with others. */
  joined: Asked | undefined = undefined
  /** What is told after it, in its lane. */
  next: Asked | undefined = undefined
  /** What it is told with that the store may not have heard. */
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

  /** Nobody waits for it any more, and it was never sent. */
  get gone(): boolean {
    return this.settled && this.storeTimeout < Number.POSITIVE_INFINITY
  }

  /** It changes nothing. */
  get looks(): boolean {
    const [question] = this.questions
    return question !== undefined && question.kind === 'take' && question.units === 0
  }
}
