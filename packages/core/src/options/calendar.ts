import { excessOption, invalidOption } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'
import { type Calendar, type CalendarInterval, CalendarTime } from '../time/calendar.ts'
import type { EpochTime, Ordinal } from '../time/intervals.ts'

/** The unit of a calendar's intervals. */
export type CalendarUnit = 'day' | 'week' | 'month'

/** A day of the week. */
export type Weekday = 'monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday' | 'sunday'

/** Options of `calendar`. */
export interface CalendarOptions {
  /**
   * Starts intervals at the midnights of this IANA time zone, such as `'Europe/Prague'`.
   *
   * @default 'UTC'
   */
  readonly timeZone?: string
  /**
   * Starts weeks on this day. Only with `'week'`.
   *
   * - `'monday'`, `'tuesday'`, `'wednesday'`, `'thursday'`, `'friday'`, `'saturday'` or `'sunday'`: weeks start at its local midnight.
   *
   * @default 'monday'
   */
  readonly startsOn?: Weekday
}

const DAY = 86_400_000
/** The names of UTC. Node.js and Deno report all of them as "UTC", and Bun as they were given. */
const UTC = /^(\+00:00|(Etc\/)?(GMT([+-]?0)?|Greenwich|UCT|UTC|Universal|Zulu))$/
/** A twelfth of a mean Gregorian year. */
const MONTH = 2_629_746_000
/** Days of the week in the order of the epoch, which began on a Thursday. The index of each is the number of its first day. */
const WEEKDAYS: readonly Weekday[] = ['thursday', 'friday', 'saturday', 'sunday', 'monday', 'tuesday', 'wednesday']

/**
 * Divides time by a calendar for `interval`: days, weeks or months, each from one local midnight of a time zone to another. A day on which
 * clocks change has 23 or 25 hours, a month has 28 to 31 days. Only `fixedWindow()` accepts it.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * throttle({ key: header('x-api-key'), limit: 10_000, interval: calendar('month', { timeZone: 'Europe/Prague' }) })
 */
export function calendar(unit: CalendarUnit, options: CalendarOptions = {}): Calendar {
  checkOptions('calendar', options, ['timeZone', 'startsOn'], 'options such as { timeZone: "Europe/Prague" }', 'calendar.')
  const { timeZone = 'UTC', startsOn } = options
  const zone = new Zone(timeZone)
  const { name } = zone
  if (startsOn !== undefined && (unit !== 'week' || !WEEKDAYS.includes(startsOn))) {
    if (unit !== 'week') throw excessOption('calendar.startsOn', 'it applies only to calendar("week")')
    throw invalidOption('calendar.startsOn', startsOn, 'a day such as "monday" or "sunday"')
  }
  switch (unit) {
    case 'day':
      return new ZonedCalendar(
        `day@${name}`,
        DAY,
        zone,
        (day) => day,
        (ordinal) => ordinal,
      )
    case 'week': {
      const first = WEEKDAYS.indexOf(startsOn ?? 'monday')
      const id = `week@${name}${first === WEEKDAYS.indexOf('monday') ? '' : `@${startsOn}`}`
      return new ZonedCalendar(
        id,
        7 * DAY,
        zone,
        (day) => Math.floor((day - first) / 7),
        (ordinal) => ordinal * 7 + first,
      )
    }
    case 'month':
      return new ZonedCalendar(`month@${name}`, MONTH, zone, monthOf, (ordinal) => Date.UTC(1970, ordinal) / DAY)
    default:
      throw invalidOption('calendar', unit, '"day", "week" or "month"')
  }
}

/** Months since the epoch, by days since the epoch. */
function monthOf(day: number): number {
  const date = new Date(day * DAY)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

/** The clocks of a time zone, from the data of Node.js. */
class Zone {
  /** The canonical name of the zone: "UTC" for "utc", "Etc/UTC" and "GMT". */
  readonly name: string
  readonly #format: Intl.DateTimeFormat

  constructor(timeZone: string) {
    try {
      if (typeof timeZone !== 'string') throw new RangeError()
      this.#format = new Intl.DateTimeFormat('en-US-u-ca-iso8601-nu-latn', {
        timeZone,
        hourCycle: 'h23',
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
      })
    } catch {
      throw invalidOption('calendar.timeZone', timeZone, 'a time zone of the IANA database, such as "Europe/Prague" or "UTC"')
    }
    const { timeZone: name } = this.#format.resolvedOptions()
    this.name = UTC.test(name) ? 'UTC' : name
  }

  /** The difference in milliseconds between UTC and the clocks of the zone at a time. */
  offsetAt(time: number): number {
    const second = Math.floor(time / 1000) * 1000
    const shown: Record<string, number> = {}
    for (const { type, value } of this.#format.formatToParts(second)) shown[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second: seconds = 0 } = shown
    return Date.UTC(year, month - 1, day, hour, minute, seconds) - second
  }

  /** The date at a time, in days since the epoch. */
  dayAt(time: number): number {
    return Math.floor((time + this.offsetAt(time)) / DAY)
  }

  /**
   * The start of a day: the first moment of its midnight, which may occur twice. If clocks are put forward over midnight, it is the moment
   * of that change.
   */
  startOfDay(day: number): number {
    const midnight = day * DAY
    const before = this.offsetAt(midnight - DAY)
    const after = this.offsetAt(midnight + DAY)
    for (const offset of [Math.max(before, after), Math.min(before, after)]) {
      if (this.offsetAt(midnight - offset) === offset) return midnight - offset
    }
    let [early, late] = [midnight - after, midnight - before]
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2)
      if (this.offsetAt(middle) === before) early = middle
      else late = middle
    }
    return late
  }
}

/** The difference between the numbers of intervals and the clock: see `Calendar`. */
const AHEAD = 1

/** Days, or groups of them, of a time zone. */
class ZonedCalendar implements Calendar {
  readonly id: string
  readonly usual: number
  readonly #zone: Zone
  readonly #ordinalOf: (day: number) => number
  readonly #firstDayOf: (ordinal: number) => number
  #last: CalendarInterval | undefined

  /**
   * @param ordinalOf the number of the interval that contains a day
   * @param firstDayOf the first day of the interval of a number. Days are counted from the epoch
   */
  constructor(id: string, usual: number, zone: Zone, ordinalOf: (day: number) => number, firstDayOf: (ordinal: number) => number) {
    this.id = id
    this.usual = usual
    this.#zone = zone
    this.#ordinalOf = ordinalOf
    this.#firstDayOf = firstDayOf
  }

  at(time: number): CalendarInterval {
    if (this.#last !== undefined && time >= this.#last.start && time < this.#last.end) return this.#last
    let found = this.of((this.#ordinalOf(this.#zone.dayAt(time)) + AHEAD) as Ordinal)
    // If clocks are put back over midnight, the date is yesterday again, but the new interval continues.
    while (time >= found.end) found = this.of((found.ordinal + 1) as Ordinal)
    this.#last = found
    return found
  }

  of(ordinal: Ordinal): CalendarInterval {
    if (this.#last?.ordinal === ordinal) return this.#last
    const first = ordinal - AHEAD
    return { ordinal, start: this.#zone.startOfDay(this.#firstDayOf(first)), end: this.#zone.startOfDay(this.#firstDayOf(first + 1)) }
  }

  over(time: EpochTime): EpochTime {
    return new CalendarTime(this, time)
  }
}
