import { changeBy, type Decide, isDone, lifetimeBy, type Question, takeBy, type Verdict } from '@weir/core/sync'
import type { KnownState } from './known-states.ts'

const DONE: Verdict = Object.freeze({ allowed: true, remaining: 0, resetAfterMs: 0, retryAfterMs: 0, delayMs: 0 })

/** The new state of a key after a request: its numbers and their lifetime. No numbers start the key again. */
export interface Change {
  readonly state: readonly number[]
  readonly lifetime: number
  /** The last requests of this process by lane, undefined after a reset. */
  readonly sequences: readonly number[] | undefined
}

export interface Outcome {
  readonly verdicts: readonly Verdict[]
  /** Parallel to the questions, undefined for a key that doesn't change. */
  readonly changes: readonly (Change | undefined)[]
}

/**
 * The effect of a request on keys with the known states, like `HubDecisions` of core.
 *
 * @param known parallel to the questions
 * @param clock the store's time
 */
export function outcomeOf(request: Decide, known: readonly KnownState[], clock: number): Outcome {
  const { questions, lane = 0 } = request
  const [question] = questions as [Question]
  if (question.kind !== 'take') return changed(question, request, known[0] as KnownState, clock)
  const nothing = questions.map(() => undefined)
  if (
    isDone(
      request,
      known.map((one) => lastOf(one, lane)),
    )
  ) {
    const look = (one: Question, i: number): Verdict => take([...(known[i] as KnownState).state], { ...one, units: 0 }, request, clock)
    return { verdicts: questions.map((one, i) => ({ ...look(one, i), allowed: true, retryAfterMs: 0 })), changes: nothing }
  }
  const states = known.map(({ state }) => [...state])
  const verdicts = questions.map((one, i) => take(states[i] as number[], one, request, clock))
  if (!verdicts.every(({ allowed }) => allowed)) return { verdicts, changes: nothing }
  return {
    verdicts,
    changes: questions.map((one, i) =>
      one.units > 0 ? changeTo(states[i] as number[], known[i] as KnownState, one, request, clock) : undefined,
    ),
  }
}

function changed(question: Question, request: Decide, known: KnownState, clock: number): Outcome {
  const unchanged = { verdicts: [DONE], changes: [undefined] }
  const last = lastOf(known, request.lane ?? 0)
  if (last >= request.sequence) return unchanged
  if (request.of !== undefined && last < request.of) return unchanged
  if (question.kind === 'reset') return { verdicts: [DONE], changes: [{ state: [], lifetime: 0, sequences: undefined }] }
  const next = [...known.state]
  changeBy(question, next, timeOf(question, request, clock))
  return { verdicts: [DONE], changes: [changeTo(next, known, question, request, clock)] }
}

function changeTo(state: readonly number[], known: KnownState, question: Question, request: Decide, clock: number): Change {
  const { sequence, lane = 0 } = request
  const sequences = Array.from({ length: Math.max(known.sequences.length, lane + 1) }, (_, i) => lastOf(known, i))
  sequences[lane] = Math.max(sequence, lastOf(known, lane))
  const lifetime = lifetimeBy(question, state, timeOf(question, request, clock))
  return { state, lifetime, sequences }
}

function take(state: number[], question: Question, request: Decide, clock: number): Verdict {
  return takeBy(question, state, timeOf(question, request, clock))
}

/** Steps that count in cells of the epoch use the processes' common time. All others use the store's own clock. */
function timeOf({ policy: { step, parameters } }: Question, { time, stepped }: Decide, clock: number): number {
  return stepped === true || step.width?.(parameters) !== undefined ? time : clock
}

function lastOf({ sequences }: KnownState, lane: number): number {
  return sequences[lane] ?? 0
}
