import { WeirError } from '@weir/core'
import type { Cell, LeaseReply, Ordinal } from '@weir/core/sync'

/** Checks for the values that the database returns. A value of another form throws, so no invalid value is used. */

/** The most units of one cell: about the sum of a thousand processes with `Number.MAX_SAFE_INTEGER` units each. */
const MOST_UNITS = 2 ** 63

/** The longest time in milliseconds, 158 years. Longer times are shortened to it. */
export const LONGEST_TIME = 5e12

/** The most cells of a window in a reply or a message: usually some 1,000, and 7,936 if each part of the window had a burst. */
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

/** Reads remaining milliseconds. Negative ones become 0. */
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

/** Reads an array. Null and undefined become an empty one. */
export function asArray(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return []
  if (!Array.isArray(value)) throw replyError('not an array')
  return value
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw replyError('not an object')
  return value as Readonly<Record<string, unknown>>
}

/** Reads [ordinal, taken, given] of each cell. */
export function asCells(value: unknown): Cell[] {
  const list = asArray(value)
  if (list.length > MOST_CELLS) throw replyError('too many cells')
  return list.map((one) => {
    const [ordinal, taken, given] = asArray(one)
    return { ordinal: asWhole(ordinal) as Ordinal, taken: asUnits(taken), given: asUnits(given) }
  })
}

/** Reads [ordinal, taken, given, level], with an optional fifth number for rejected units. */
export function asBucket(value: unknown): Cell {
  const [ordinal, taken, given, level, rejected] = asArray(value)
  const cell = { ordinal: asWhole(ordinal) as Ordinal, taken: asUnits(taken), given: asUnits(given), level: asUnits(level) }
  return rejected === undefined ? cell : { ...cell, rejected: asUnits(rejected) }
}

/** Reads [granted, free, used, tail, quiet, epoch, now]. */
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

/** Reads an independent part of a reply. If the part is invalid, it counts as missing. */
export function understood<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}
