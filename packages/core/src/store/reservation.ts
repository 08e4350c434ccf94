import { MOST_OPEN, type OpenReservation, type Question } from './decider.ts'
import type { Verdict } from './step.ts'

/** An open reservation in the state of a key, with the time at which its units were counted, as in `AtomicStep.giveBack`. */
interface Kept extends OpenReservation {
  readonly at: number
}

/** Numbers of a reservation in the state: id, end, at, units, due. */
const FIELDS = 5

/*
 * The state of a key begins with the number of its open reservations. Then come their numbers, and then the state of the step. An empty
 * state is a new key's. Each function first settles the reservations whose end has passed. So the units of a dead process are back before
 * they are needed, and no process has to look for them.
 */

/** Takes units of a key by its policy's step, and opens the reservation of the question. */
export function takeBy(question: Question, state: number[], now: number): Verdict {
  const { policy, units, limit, reservation } = question
  if (reservation === undefined && now < untouchedUntil(state, latestOf(question, now))) {
    // Most requests. Their cost must not grow with objects for each open reservation of the key.
    const open = state.splice(0, sizeOf(state))
    const verdict = policy.step.take(state, now, units, limit, policy.parameters)
    state.unshift(...(open.length > 0 ? open : [0]))
    return verdict
  }
  const open = split(question, state, now)
  const verdict = policy.step.take(state, now, units, limit, policy.parameters)
  join(state, verdict.allowed && units > 0 ? withOne(open, reservation, now) : open)
  return verdict
}

/** Changes the state of a key by a question that is no take and no reset. */
export function changeBy(question: Question, state: number[], now: number): void {
  const { policy, kind, units, limit, at, reservation } = question
  const { step, parameters } = policy
  const open = split(question, state, now)
  if (kind === 'add') {
    if (units > 0) step.add(state, now, units, limit, parameters)
    // Without units it opens a reservation for units that were taken before.
    join(state, withOne(open, reservation, now, units > 0 ? now : at))
    return
  }
  const one = open.find(({ id }) => id === reservation?.id)
  if (kind === 'give-back') {
    // Units of a reservation that is no longer open have been settled.
    if (reservation === undefined || one !== undefined) step.giveBack(state, at, units, now, limit, parameters)
  } else if (kind === 'settle' && one !== undefined) count(question, state, one, units, now)
  join(
    state,
    open.flatMap((kept) => (kept !== one ? [kept] : kind === 'use' ? [{ ...kept, due: units }] : [])),
  )
}

/** Milliseconds until the state is worth no more than a new key's. */
export function lifetimeBy({ policy: { step, parameters }, limit }: Question, state: readonly number[], now: number): number {
  let last = now
  for (let i = 2; i < sizeOf(state); i += FIELDS) last = Math.max(last, state[i] as number)
  return Math.max(step.lifetime(state.slice(sizeOf(state)), now, limit, parameters), last - now)
}

/** Whether numbers can be a key's state. Stores whose data other programs may change check it before they use these functions. */
export function isState(numbers: readonly number[]): boolean {
  const [open] = numbers
  return open === undefined || (Number.isInteger(open) && open >= 0 && open <= MOST_OPEN && numbers.length > FIELDS * open)
}

/** The count of the numbers of open reservations. */
function sizeOf([open = 0]: readonly number[]): number {
  return 1 + FIELDS * open
}

/**
 * The latest time in a state. If a store's clock goes back, steps set later times to `now`, and reservations must follow, or their units
 * would not be found. The time of cells of the epoch doesn't go back.
 */
function latestOf({ policy: { step, parameters } }: Question, now: number): number {
  return step.width?.(parameters) === undefined ? now : Number.POSITIVE_INFINITY
}

/** Until when no open reservation is settled. -Infinity if one is later than `latest`. */
function untouchedUntil(state: readonly number[], latest: number): number {
  let first = Number.POSITIVE_INFINITY
  for (let i = 2; i < sizeOf(state); i += FIELDS) {
    if ((state[i + 1] as number) > latest) return Number.NEGATIVE_INFINITY
    first = Math.min(first, state[i] as number)
  }
  return first
}

/** The open reservations of a key. */
function openOf(state: readonly number[], latest: number): readonly Kept[] {
  const [count = 0] = state
  const number = (place: number): number => state[place] as number
  const open: Kept[] = []
  for (let i = 1; open.length < count; i += FIELDS) {
    open.push({ id: number(i), end: number(i + 1), at: Math.min(number(i + 2), latest), units: number(i + 3), due: number(i + 4) })
  }
  return open
}

/** Removes the open reservations from a state, and settles the ones whose end has passed as of their end, however late that is. */
function split(question: Question, state: number[], now: number): readonly Kept[] {
  const open = openOf(state, latestOf(question, now))
  state.splice(0, sizeOf(state))
  const ended = open.filter(({ end }) => now >= end).sort((a, b) => a.end - b.end || a.id - b.id)
  for (const one of ended) count(question, state, one, one.due, one.end)
  return ended.length === 0 ? open : open.filter((one) => !ended.includes(one))
}

function join(state: number[], open: readonly Kept[]): void {
  state.unshift(open.length, ...open.flatMap(({ id, end, at, units, due }) => [id, end, at, units, due]))
}

function withOne(open: readonly Kept[], one: OpenReservation | undefined, now: number, at: number = now): readonly Kept[] {
  if (one === undefined || now >= one.end || open.length >= MOST_OPEN || open.some(({ id }) => id === one.id)) return open
  return [...open, { ...one, at }]
}

/** Counts `used` units instead of the reserved ones. Returned units that have left the count meanwhile change nothing. */
function count({ policy, limit }: Question, state: number[], { at, units }: Kept, used: number, now: number): void {
  const { step, parameters } = policy
  if (used > units) step.add(state, now, used - units, limit, parameters)
  else if (used < units) step.giveBack(state, at, units - used, now, limit, parameters)
}
