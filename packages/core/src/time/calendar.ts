import { type EpochTime, endOf, type Interval, type Ordinal, ordinalAt, startOf } from './intervals.ts'

/** One interval of a calendar, such as a month, in milliseconds since the Unix epoch. */
export interface CalendarInterval extends Interval {
  readonly ordinal: Ordinal
}

/**
 * Intervals of a calendar, which are not all equally long. All processes number them alike, without gaps in time. A store has only their
 * numbers and their usual length, and must not treat a running interval as ended. So interval `n` begins no later than `n` times the usual
 * length after the epoch, and ends no later than `n + 1` times.
 */
export interface Calendar {
  /** Distinguishes calendars in a store. */
  readonly id: string
  /** Milliseconds. */
  readonly usual: number
  /** The interval that contains a time. */
  at(time: number): CalendarInterval
  /** An interval by its number. It is empty if the calendar omits it. */
  of(ordinal: Ordinal): CalendarInterval
  /** A clock by which each interval takes the usual time. */
  over(time: EpochTime): EpochTime
}

/** The options of a policy that describe its intervals. */
export interface Divided {
  /** Milliseconds. For a calendar it is the usual length. */
  readonly interval: number
  readonly calendar?: Calendar | undefined
}

/** The clock by which a policy's intervals are equally long. */
export function epochTimeOf({ calendar }: Divided, time: EpochTime): EpochTime {
  return calendar?.over(time) ?? time
}

/** The begin and the end of a policy's interval, in milliseconds since the epoch. */
export function intervalOf(ordinal: Ordinal, { interval, calendar }: Divided): Interval {
  return calendar?.of(ordinal) ?? { start: startOf(ordinal, interval), end: endOf(ordinal, interval) }
}

/** Milliseconds before an interval's end that no rounding loses, whatever year it is. */
const LEAST = 1 / 64

/**
 * A clock that runs through each interval of a calendar in the same time. So code that counts in intervals of one length, by this clock,
 * counts in the intervals of the calendar:
 *
 *     store    |    31 days    |   28 days   |    31 days    |
 *     here     |    usual     |    usual     |    usual     |
 */
export class CalendarTime implements EpochTime {
  readonly #calendar: Calendar
  readonly #time: EpochTime

  constructor(calendar: Calendar, time: EpochTime) {
    this.#calendar = calendar
    this.#time = time
  }

  at(monotonic: number): number {
    const { usual } = this.#calendar
    const time = this.#time.at(monotonic)
    const { ordinal, start, end } = this.#calendar.at(time)
    const passed = ((time - start) / (end - start)) * usual
    return startOf(ordinal, usual) + Math.min(passed, usual - LEAST)
  }

  monotonicAt(time: number): number {
    const { usual } = this.#calendar
    const ordinal = ordinalAt(time, usual)
    const { start, end } = this.#calendar.of(ordinal)
    return this.#time.monotonicAt(start + ((time - startOf(ordinal, usual)) / usual) * (end - start))
  }

  uncertainty(monotonic: number): number {
    return this.#time.uncertainty(monotonic)
  }
}
