import { type Duration, parseDuration } from '../options/duration.ts'
import { invalidOption } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import { LONGEST_TIMER } from '../time/alarm.ts'

/** Limits how many requests may wait with `acquire` or a policy's `delay`, and for how long. */
export interface QueueOptions {
  /**
   * Limits how many requests wait in total: at least 1. In middleware, one client can use as many positions as are still free.
   *
   * Beyond it, `acquire` rejects with the reason `'queue-full'`. A client is identified by its address, so a single client uses half at
   * most.
   *
   * @default 10_000
   */
  readonly maxWaiting?: number
  /**
   * Limits how many requests wait for one key: at least 1.
   *
   * Beyond it, `acquire` rejects with the reason `'queue-full'`.
   *
   * @default 1_000
   */
  readonly maxWaitingPerKey?: number
  /**
   * Limits how long a request waits: at most 24 days. It is the default of `timeout`, and its maximum.
   *
   * @default '30s'
   */
  readonly maxWait?: Duration
  /**
   * On `close()`, lets requests start whose turn comes within `closeTimeout`, or rejects all.
   *
   * - `'finish'`: all others are rejected at once. A request for a slot of `concurrency()` waits until then, because the end of other
   *   requests is unknown.
   * - `'reject'`: all are rejected at once.
   *
   * @default 'finish'
   */
  readonly onClose?: 'finish' | 'reject'
}

/** Checked `QueueOptions`. Times in milliseconds. */
export interface QueueSettings {
  readonly maxWaiting: number
  readonly maxWaitingPerKey: number
  readonly maxWait: number
  readonly onClose: 'finish' | 'reject'
}

const QUEUE_OPTIONS: readonly string[] = ['maxWaiting', 'maxWaitingPerKey', 'maxWait', 'onClose'] satisfies (keyof QueueOptions)[]

/** @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION` */
export function queueSettings(options: QueueOptions = {}): QueueSettings {
  if (typeof options !== 'object' || options === null) throw invalidOption('queue', options, 'an object such as { maxWait: "10s" }')
  checkNames('The option "queue"', options, QUEUE_OPTIONS)
  const { maxWaiting = 10_000, maxWaitingPerKey = 1_000, maxWait = 30_000, onClose = 'finish' } = options
  if (!isCount(maxWaiting)) throw invalidOption('queue.maxWaiting', maxWaiting, 'a whole number of at least 1')
  if (!isCount(maxWaitingPerKey)) throw invalidOption('queue.maxWaitingPerKey', maxWaitingPerKey, 'a whole number of at least 1')
  if (onClose !== 'finish' && onClose !== 'reject') throw invalidOption('queue.onClose', onClose, '"finish" or "reject"')
  return { maxWaiting, maxWaitingPerKey, maxWait: parseDuration(maxWait, 'queue.maxWait', 0, LONGEST_TIMER), onClose }
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1
}
