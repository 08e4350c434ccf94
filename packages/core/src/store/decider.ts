import type { AtomicStep, Verdict } from './step.ts'

/**
 * A policy whose requests the store decides about. Mostly the same object for every question of one policy; its `parameters` may differ from
 * one question to the next, and what is kept of a key is one count all the same: units of a bucket are counted ahead by what it may hold then.
 */
export interface DecidedPolicy {
  /** As `StorePolicy.id`. */
  readonly id: string
  /** The store's step: it finds a script by its id, or calls it. */
  readonly step: AtomicStep
  readonly parameters: readonly number[]
}

/**
 * The kind of question about a key.
 * - `'take'`: to count `units` if they fit. 0 units only look.
 * - `'add'`: to count `units` whether or not they fit.
 * - `'give-back'`: to return `units` that were taken at the time `at`.
 * - `'reset'`: the key to be as one that was never used.
 */
export interface Question {
  readonly policy: DecidedPolicy
  readonly key: string
  readonly kind: 'take' | 'add' | 'give-back' | 'reset'
  /** A finite number; more than 0, but for looks and resets. */
  readonly units: number
  /** Units per interval for the key: the policy's limit, or its own. 0, `Infinity`, or at least 1. */
  readonly limit: number
  /** When the units were taken or are counted, by the time that the nodes go by, milliseconds since the Unix epoch. */
  readonly at: number
}

/** Questions that are answered in one atomic step: either one of any kind, or several takes, each of another policy. */
export interface Decide {
  /** Grows with each request of the node. The same when it is asked again. */
  readonly sequence: number
  /**
   * Requests of a node to the same key that are under way at once have different lanes, small whole numbers. A store remembers of each key the last
   * request that changed it of each node and lane (`laneOf`), and knows by it whether it has done one that is asked `again`. Default: 0.
   */
  readonly lane?: number
  /**
   * It was asked before, without an answer: what was done of it then must not be done again. The first copy may arrive after this one; it
   * changes nothing then (`isDone`).
   */
  readonly again?: true
  /** For `'give-back'`: the number of a request that got no answer. Its units return only if that request was counted. */
  readonly of?: number
  /** The time that the nodes go by. */
  readonly time: number
  /** That time is far from what the store's clock shows, as that was stepped: the store goes by it in everything. */
  readonly stepped?: true
  /** All takes are counted if all of them fit, or else none. */
  readonly questions: readonly Question[]
}

/** A node's way to ask a store about single requests. Its answers are idempotent, and what it keeps expires by itself. */
export interface Decider {
  /** Questions about keys of the same part may be asked together. */
  partOf(key: string): number
  /**
   * One atomic step. Calls about one key take effect in their order, although none waits for the answer to the one before: a request that
   * follows a refund, a charge or a reset of the same process sees it.
   *
   * @returns a verdict for each question: what it would have been alone where another one did not fit. Of kinds other than
   * `'take'`: one that allows, whose numbers say nothing. Undefined, with nothing done, where the store answers but what it holds of a
   * key makes no sense: then that request alone is decided without it
   * @throws (rejects) when the outcome is not known. It may stay pending: the node has a deadline of its own
   */
  decide(request: Decide): Promise<readonly Verdict[] | undefined>
}

/** The name under which a store remembers a key's last request: the process, and its lane if that is not 0. */
export function laneOf(node: string, { lane = 0 }: Decide): string {
  return lane === 0 ? node : `${node} ${lane}`
}

/**
 * Whether a store has done what a request of takes asks for, so that it changes nothing more and counts as allowed: each of its keys has
 * seen it. The first copy, which may arrive after it was asked again for each key by itself, is stale as soon as one of them has.
 *
 * @param last of each key, the number of the last request of this node and lane that changed it
 */
export function isDone({ sequence, again, questions }: Decide, last: readonly number[]): boolean {
  const seen = (number: number): boolean => number >= sequence
  return again === true ? last.every(seen) : last.some(seen) && questions.some(({ units }) => units > 0)
}
