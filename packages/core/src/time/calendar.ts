import { type EpochTime, endOf, type Interval, type Ordinal, ordinalAt, startOf } from './intervals.ts'

/** One interval of a calendar, such as a month, in milliseconds since the Unix epoch. */
export interface CalendarInterval extends Interval {
  readonly ordinal: Ordinal
}

/**
 * Intervals of a calendar, which are not all equally long. They are numbered without gaps in time, at all nodes alike. What knows no
 * more of them than their numbers and their usual length, as a store does, is to take none for over that still runs: the
 * interval `n` begins and ends no later than `n` and `n + 1` times the usual length after the epoch.
 */
export interface Calendar {
  /** Tells calendars apart in a store. */
  readonly id: string
  /** Milliseconds. */
  readonly usual: number
  /** The interval that holds a time. */
  at(time: number): CalendarInterval
  /** An interval by its number; an empty one where the calendar leaves it out. */
  of(ordinal: Ordinal): CalendarInterval
  /** A clock by which each interval takes the usual time. */
  over(time: EpochTime): EpochTime
}

/** The options of a policy that describe its intervals. */
export interface Divided {
  /** Milliseconds; of a calendar the usual length. */
  readonly interval: number
  readonly calendar?: Calendar | undefined
}

/** The clock by which a policy's intervals are equally long. */
export function epochTimeOf({ calendar }: Divided, time: EpochTime): EpochTime {
  return calendar?.over(time) ?? time
}

/** When an interval of a policy begins and ends, milliseconds since the epoch. */
export function intervalOf(ordinal: Ordinal, { interval, calendar }: Divided): Interval {
  return calendar?.of(ordinal) ?? { start: startOf(ordinal, interval), end: endOf(ordinal, interval) }
}

/** Milliseconds before an interval's end that no rounding loses, whatever year it is. */
const LEAST = 1 / 64

/**
 * A clock that runs through each interval of a calendar in the same time. So whatever counts in intervals of one length, by this
 * clock, counts in those of the calendar:
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
