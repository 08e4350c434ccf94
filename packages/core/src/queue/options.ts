import { type Duration, parseDuration } from '../options/duration.ts'
import { oneOf } from '../options/one-of.ts'
import { invalidOption } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import type { Asked } from './asked.ts'
import type { QueueSettings } from './settings.ts'

/** Units for each policy, by name. */
type CostsByName<Name extends string> = { readonly [N in Name]?: number | undefined }

/** Options of `acquire` and `tryAcquire` for one request. */
export interface AcquireOptions<Name extends string = string> {
  /**
   * Sets how many units this request uses: a finite number > 0, or one for each policy by name. Policies without one are then not
   * counted. Throws `WEIR_UNKNOWN_POLICY` for another name.
   *
   * @default the `cost` of each policy if it is a number, otherwise 1
   * @example
   * await throttler.acquire('user-1', { cost: 5 })
   */
  readonly cost?: number | CostsByName<Name>
  /**
   * Sets the limit of this key for this call, as for `check`: 0 rejects, `Infinity` allows, any other value is a number of at least 1.
   *
   * @default the `limit` of each policy
   */
  readonly limit?: number | undefined
  /**
   * Limits how long the request waits: 0 to `maxWait` of the queue.
   *
   * With 0 it doesn't wait. A longer one throws `WEIR_INVALID_OPTION`.
   *
   * @default `maxWait`, or 0 with `tryAcquire`
   * @see `@weir/core/docs/reference/options.md#queue`
   */
  readonly timeout?: Duration
  /**
   * Cancels the request when the signal is aborted. It then uses no units.
   *
   * It rejects with the reason `'aborted'`. One signal can serve any number of requests.
   *
   * @default none: only `timeout` ends the wait
   */
  readonly signal?: AbortSignal | undefined
  /**
   * Chooses which waiting request of a key is allowed first: the most important.
   *
   * - `'critical'`: before all others.
   * - `'high'`: before the default.
   * - `'default'`: the normal priority.
   * - `'low'`: after the default.
   * - `'sheddable'`: after all others.
   *
   * Requests of one priority keep their order.
   *
   * @default 'default'
   */
  readonly priority?: Priority
}

/** How important a request is, the most important first. */
export type Priority = 'critical' | 'high' | 'default' | 'low' | 'sheddable'

/** Options of `schedule`. */
export type ScheduleOptions<Name extends string = string> = AcquireOptions<Name>

/** Options of `wrap`. */
export interface WrapOptions<Args extends readonly unknown[], This = unknown> extends ScheduleOptions {
  /**
   * Chooses the key that a call is counted by: a string, or a function of the call's arguments.
   *
   * @example
   * const send = throttler.wrap(sendMail, { key: (message) => message.account })
   */
  readonly key: string | ((this: This, ...args: Args) => string)
}

/** Signals that a request stops waiting: an `AbortSignal`, or the members of it that are needed. */
export interface Leaving {
  readonly aborted: boolean
  readonly reason?: unknown
  /** Whether it belongs to one request alone, which listens to it directly. */
  readonly own?: true
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Checked `AcquireOptions`. Times in milliseconds. */
export interface Wanted {
  readonly cost: number | undefined
  readonly limit: number | undefined
  readonly timeout: number
  readonly signal: Leaving | undefined
  readonly priority: number
  /** Whether a rejection is returned as a decision instead of thrown. */
  readonly returns: boolean
  /** Its key and cost for each policy. Undefined if they are the same for all. */
  readonly asked: Asked | undefined
  /** The client of the request, if known. */
  readonly client?: string | undefined
  /** Whether it was decided before it came here. Then it can't be decided again. */
  readonly decided?: true
}

/** Whether two requests are interchangeable: they can be sent to the store together, and each can use the other's grant. */
export function isLike(a: Wanted, b: Wanted): boolean {
  if (a.cost !== b.cost || a.limit !== b.limit) return false
  return a.asked === b.asked || (a.asked !== undefined && b.asked?.isLike(a.asked) === true)
}

const ACQUIRE_OPTIONS: readonly string[] = ['cost', 'limit', 'timeout', 'signal', 'priority'] satisfies (keyof AcquireOptions)[]

/** A higher number goes first. */
const PRIORITIES: Readonly<Record<Priority, number>> = { critical: 2, high: 1, default: 0, low: -1, sheddable: -2 }
const NAMES = ['default', 'critical', 'high', 'low', 'sheddable'] as const

/** The options of requests without options: one object for all, because very many may wait. */
let usual: Wanted = { cost: undefined, limit: undefined, timeout: 0, signal: undefined, priority: 0, returns: false, asked: undefined }

/**
 * @param returns as of `tryAcquire`, which doesn't wait by default
 * @param askedBy places costs by name
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function wanted(
  options: AcquireOptions | undefined,
  { maxWait }: QueueSettings,
  returns = false,
  askedBy?: (cost: CostsByName<string>, limit: number | undefined) => Asked,
): Wanted {
  if (options === undefined && returns) return { ...usual, timeout: 0, returns }
  if (options === undefined) return usual.timeout === maxWait ? usual : (usual = { ...usual, timeout: maxWait })
  if (typeof options !== 'object' || options === null) throw invalidOption('options', options, 'an object such as { timeout: "5s" }')
  checkNames(returns ? 'tryAcquire' : 'acquire', options, ACQUIRE_OPTIONS)
  const { cost, limit, timeout, signal, priority } = options
  if (signal !== undefined && (typeof signal?.addEventListener !== 'function' || typeof signal.aborted !== 'boolean'))
    throw invalidOption('signal', signal, 'an AbortSignal')
  const byName = typeof cost === 'object' && cost !== null
  return {
    cost: byName ? undefined : cost,
    limit,
    timeout: timeout === undefined ? (returns ? 0 : maxWait) : parseDuration(timeout, 'timeout', 0, maxWait),
    signal,
    priority: PRIORITIES[oneOf<Priority>('priority', priority, NAMES)],
    returns,
    asked: byName ? askedBy?.(cost, limit) : undefined,
  }
}
