import { WeirError } from '@weir/core'
import type { Cell, LeaseReply, Ordinal } from '@weir/core/sync'

/** The forms in which the database hands things back. What has another one is told apart, not trusted. */

/** Units of one cell. More is in nobody's books. */
const MOST_UNITS = 2 ** 63

/** Milliseconds, 158 years. What is to last longer lasts as long. */
export const LONGEST_TIME = 5e12

/** Cells of a window, in a reply or a message: some 1,000 as a rule, and 7,936 if each part of it has been in a burst. */
const MOST_CELLS = 8_192

export function replyError(what: string): WeirError {
  return new WeirError(
    'WEIR_STORE_REPLY',
    `Invalid reply from PostgreSQL: ${what}. Does another program write to the tables or functions of this schema?`,
  )
}

export function asNumber(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw replyError('not a number')
  return value
}

/** A whole number that is not negative: an ordinal, a version. */
export function asWhole(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw replyError('not a whole number')
  return value as number
}

export function asUnits(value: unknown): number {
  const units = asNumber(value)
  if (!(units >= 0 && units <= MOST_UNITS)) throw replyError('not a count')
  return units
}

/** Milliseconds that are left of something; none when it is over. */
export function asRemaining(value: unknown): number {
  return Math.min(LONGEST_TIME, Math.max(0, asNumber(value)))
}

/** The last moment of a `Date`. */
const LAST_TIME = 8.64e15

export function asTime(value: unknown): number {
  const time = asNumber(value)
  if (!(time >= 0 && time <= LAST_TIME)) throw replyError('not a time')
  return time
}

export function asText(value: unknown): string {
  if (typeof value !== 'string') throw replyError('not a text')
  return value
}

/** An array; empty for nothing. */
export function asArray(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return []
  if (!Array.isArray(value)) throw replyError('not an array')
  return value
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw replyError('not an object')
  return value as Readonly<Record<string, unknown>>
}

/** [ordinal, taken, given] of each. */
export function asCells(value: unknown): Cell[] {
  const list = asArray(value)
  if (list.length > MOST_CELLS) throw replyError('too many cells')
  return list.map((one) => {
    const [ordinal, taken, given] = asArray(one)
    return { ordinal: asWhole(ordinal) as Ordinal, taken: asUnits(taken), given: asUnits(given) }
  })
}

/** [ordinal, taken, given, level] and perhaps rejected. */
export function asBucket(value: unknown): Cell {
  const [ordinal, taken, given, level, rejected] = asArray(value)
  const cell = { ordinal: asWhole(ordinal) as Ordinal, taken: asUnits(taken), given: asUnits(given), level: asUnits(level) }
  return rejected === undefined ? cell : { ...cell, rejected: asUnits(rejected) }
}

/** [granted, free, used, tail, quiet, epoch, now]. */
export function asLease(value: unknown): LeaseReply {
  const [granted, free, used, tail, quiet, epoch, now] = asArray(value)
  if (typeof tail !== 'boolean') throw replyError('a lease')
  return {
    granted: asNumber(granted),
    free: asNumber(free),
    used: asNumber(used),
    tail,
    quiet: asRemaining(quiet),
    epoch: asNumber(epoch),
    now: asTime(now),
  }
}

/** A part of a reply that stands for itself: what is not understood of it is as if it were not there. */
export function understood<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}
