import { type Duration, parseDuration } from '../options/duration.ts'
import { checkNames } from '../options/names.ts'
import { invalidOption } from '../report/errors.ts'
import type { Asked } from './asked.ts'
import type { QueueSettings } from './settings.ts'

/** What `acquire` can be told of a request. */
export interface AcquireOptions {
  /** Units, a finite number > 0. Default: the policies' `cost` where it is a number, or 1. */
  readonly cost?: number
  /** As for `check`. */
  readonly limit?: number | undefined
  /** How long the request may wait; at most `maxWait` of the throttler's `queue`, which is the default. 0: not at all. */
  readonly timeout?: Duration
  /** When it is aborted, the request leaves and takes nothing. One signal can serve any number of requests. */
  readonly signal?: AbortSignal | undefined
  /** A whole number from -10 to 10. Of requests for one key the one with the highest goes first. Default 0. */
  readonly priority?: number
  /**
   * What happens when the request can't go: `'throw'` (default) rejects with an `AcquireError`; `'return'` resolves with the decision
   * that refused it, unless the request was aborted or the throttler closed.
   */
  readonly refusal?: 'throw' | 'return'
}

/** What `schedule` can be told. */
export type ScheduleOptions = Omit<AcquireOptions, 'refusal'>

/** What `wrap` can be told. */
export interface WrapOptions<Args extends readonly unknown[], This = unknown> extends ScheduleOptions {
  /** The key that a call is counted by. */
  readonly key: string | ((this: This, ...args: Args) => string)
}

/** Tells that somebody waits no more: an `AbortSignal`, or as much of one as that takes. */
export interface Leaving {
  readonly aborted: boolean
  readonly reason?: unknown
  /** Whether it belongs to one request alone, which listens to it directly. */
  readonly own?: true
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** `AcquireOptions`, checked; times in milliseconds. */
export interface Wanted {
  readonly cost: number | undefined
  readonly limit: number | undefined
  readonly timeout: number
  readonly signal: Leaving | undefined
  readonly priority: number
  readonly refusal: 'throw' | 'return'
  /** What it asks of each policy; undefined where its key and cost are those of all. */
  readonly asked: Asked | undefined
  /** The client that waits, where it is known. */
  readonly client?: string | undefined
  /** Whether it was decided before it came here: it can't be decided about again. */
  readonly decided?: true
}

/** Whether requests want the same: such can be asked for together, and each can take what was granted to another one. */
export function isLike(a: Wanted, b: Wanted): boolean {
  if (a.cost !== b.cost || a.limit !== b.limit) return false
  return a.asked === b.asked || (a.asked !== undefined && b.asked?.isLike(a.asked) === true)
}

const ACQUIRE_OPTIONS: readonly string[] = ['cost', 'limit', 'timeout', 'signal', 'priority', 'refusal'] satisfies (keyof AcquireOptions)[]

/** Priorities reach as far up and down. */
const HIGHEST = 10

/** What requests want that say nothing: one object for all of them, as many may wait. */
let usual: Wanted = { cost: undefined, limit: undefined, timeout: 0, signal: undefined, priority: 0, refusal: 'throw', asked: undefined }

/** @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION` */
export function wanted(options: AcquireOptions | undefined, { maxWait }: QueueSettings): Wanted {
  if (options === undefined) return usual.timeout === maxWait ? usual : (usual = { ...usual, timeout: maxWait })
  if (typeof options !== 'object' || options === null) throw invalidOption('options', options, 'an object such as { timeout: "5s" }')
  checkNames('acquire', options, ACQUIRE_OPTIONS)
  const { cost, limit, timeout, signal, priority = 0, refusal = 'throw' } = options
  if (signal !== undefined && (typeof signal?.addEventListener !== 'function' || typeof signal.aborted !== 'boolean'))
    throw invalidOption('signal', signal, 'an AbortSignal')
  if (!Number.isInteger(priority) || Math.abs(priority) > HIGHEST)
    throw invalidOption('priority', priority, `a whole number from -${HIGHEST} to ${HIGHEST}`)
  if (refusal !== 'throw' && refusal !== 'return') throw invalidOption('refusal', refusal, '"throw" or "return"')
  return {
    cost,
    limit,
    timeout: timeout === undefined ? maxWait : parseDuration(timeout, 'timeout', 0, maxWait),
    signal,
    priority,
    refusal,
    asked: undefined,
  }
}
