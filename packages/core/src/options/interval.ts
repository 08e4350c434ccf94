import type { Calendar, Divided } from '../time/calendar.ts'
import { type Duration, parseDuration } from './duration.ts'

/** A policy's intervals: a fixed length, or the days, weeks or months of a calendar. */
export type IntervalOption = Duration | Calendar

/**
 * The intervals of a policy.
 *
 * @param option the option's name, for the message
 * @param least the smallest allowed length in milliseconds
 * @throws WeirError `WEIR_INVALID_OPTION`
 */
export function parseInterval(given: unknown, option: string, least: number): Required<Divided> {
  if (isCalendar(given)) return { interval: given.usual, calendar: given }
  return { interval: parseDuration(given, option, least), calendar: undefined }
}

/** Checks the members, because an application may have this package twice, as ESM and as CommonJS. */
function isCalendar(given: unknown): given is Calendar {
  if (typeof given !== 'object' || given === null) return false
  const { id, usual, over } = given as Partial<Calendar>
  return typeof id === 'string' && typeof usual === 'number' && typeof over === 'function'
}
