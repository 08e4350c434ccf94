import type { AtomicStep, Verdict } from './step.ts'

/**
 * A policy whose requests the store decides. Most questions of one policy have the same object. Its `parameters` may differ between
 * questions, but a key still has one state: units of a bucket are counted ahead up to the size that it has then.
 */
export interface DecidedPolicy {
  /** As `StorePolicy.id`. */
  readonly id: string
  /** The store's step: it finds a script by its id, or calls it. */
  readonly step: AtomicStep
  readonly parameters: readonly number[]
}

/** Units of a key that are counted for a call whose real use is known only after it ends. Times are milliseconds since the Unix epoch. */
export interface OpenReservation {
  /** A random whole number of at most 52 bits. */
  readonly id: number
  /** When the store settles the reservation, because its process may be dead. */
  readonly end: number
  /** The units that are counted for it. */
  readonly units: number
  /** The units that count at its end if nothing else is reported until then. */
  readonly due: number
}

/** The most open reservations of a key. Further ones are counted, but the store never settles them. */
export const MOST_OPEN = 1_000

/**
 * The kind of question about a key.
 * - `'take'`: counts `units` if they fit. 0 units only look.
 * - `'add'`: counts `units` whether or not they fit.
 * - `'give-back'`: returns `units` that were taken at the time `at`.
 * - `'use'`: `units` of an open reservation were used so far.
 * - `'settle'`: an open reservation has ended, and used `units`.
 * - `'reset'`: makes the key like a new key.
 */
export interface Question {
  readonly policy: DecidedPolicy
  readonly key: string
  readonly kind: 'take' | 'add' | 'give-back' | 'use' | 'settle' | 'reset'
  /** A finite number. It is more than 0, except for looks, resets and questions about a reservation. */
  readonly units: number
  /** Units per interval for the key: the policy's limit, or the key's own. It is 0, `Infinity`, or at least 1. */
  readonly limit: number
  /** The time at which the units were taken or are counted, as the processes agree on it, in milliseconds since the Unix epoch. */
  readonly at: number
  /** The reservation that a `'take'` or an `'add'` opens, a `'give-back'` closes, or the other kinds are about. */
  readonly reservation?: OpenReservation
}

/** Questions that the store answers in one atomic step: one of any kind, or several takes of different policies. */
export interface Decide {
  /** Grows with each request of the process. A repeated request has the same number. */
  readonly sequence: number
  /**
   * Requests of a process to the same key that are in flight at once have different lanes, small whole numbers. For each key, process and
   * lane (`laneOf`) the store remembers the last request that changed the key, so it recognises a request that is sent `again`. Default: 0.
   */
  readonly lane?: number
  /**
   * The request was sent before and got no answer, so the store must not count it twice. If the first copy arrives after this one, it
   * changes nothing (`isDone`).
   */
  readonly again?: true
  /** For `'give-back'`: the `sequence` of a request that got no answer. Its units return only if that request was counted. */
  readonly of?: number
  /** The time that the processes agree on, in milliseconds since the Unix epoch. */
  readonly time: number
  /** The store's clock was stepped, so `time` is far from it. Then the store uses `time` for every step. */
  readonly stepped?: true
  /** All takes are counted if all of them fit. Otherwise none is. */
  readonly questions: readonly Question[]
}

/** Lets a store decide single requests of a process. Its answers are idempotent, and everything that it keeps expires by itself. */
export interface Decider {
  /** The part of the store that keeps a key. One request may contain questions about several keys of one part. */
  partOf(key: string): number
  /**
   * Decides in one atomic step. Calls about one key take effect in their order, although no call waits for the answer to the previous one.
   * A request that follows a refund, a charge or a reset of the same process sees its effect.
   *
   * @returns a verdict for each question. If one of several takes doesn't fit, each of the others gets the verdict that it would get alone.
   * Kinds other than `'take'` get a verdict that allows and whose numbers have no meaning. The result is undefined, and nothing is counted,
   * if the store answers but its data for a key is invalid. Then only that request is decided without the store
   * @throws (rejects) if the outcome is unknown. It may stay pending, because the process has its own timeout
   */
  decide(request: Decide): Promise<readonly Verdict[] | undefined>
}

/** The name under which a store remembers a key's last request: the process, and its lane if that is not 0. */
export function laneOf(node: string, { lane = 0 }: Decide): string {
  return lane === 0 ? node : `${node} ${lane}`
}

/**
 * Whether a store has already counted a request of takes, so that the request changes nothing more and counts as allowed. A request that is
 * sent `again` was counted if each of its keys has seen it. A first copy may arrive after its questions were sent again one by one, so it
 * is stale as soon as one of its keys has seen it.
 *
 * @param last for each key, the number of the last request of this process and lane that changed it
 */
export function isDone({ sequence, again, questions }: Decide, last: readonly number[]): boolean {
  const seen = (number: number): boolean => number >= sequence
  return again === true ? last.every(seen) : last.some(seen) && questions.some(({ units }) => units > 0)
}
