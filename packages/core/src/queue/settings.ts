import { type Duration, parseDuration } from '../options/duration.ts'
import { checkNames } from '../options/names.ts'
import { invalidOption } from '../report/errors.ts'
import { LONGEST_TIMER } from '../time/alarm.ts'

/** How many requests may wait with `acquire`, and for how long. */
export interface QueueOptions {
  /**
   * Requests that wait in all; a whole number of at least 1. Default 10,000. In middleware one client, by its address, may have as many of these
   * places as are free: alone half of them.
   */
  readonly maxWaiting?: number
  /** Requests that wait for one key; a whole number of at least 1. Default 1,000. */
  readonly maxWaitingPerKey?: number
  /** How long a request waits that gives no `timeout`, and the most that one may give; at most 24 days. Default `'30s'`. */
  readonly maxWait?: Duration
  /**
   * What `close` does with requests that wait: `'finish'` (default): those go on that may within `closeTimeout`, the others are rejected
   * at once; `'reject'`: all are rejected at once.
   */
  readonly onClose?: 'finish' | 'reject'
}

/** `QueueOptions`, checked; times in milliseconds. */
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
