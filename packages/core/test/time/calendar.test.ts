import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CalendarUnit, calendar } from '../../src/options/calendar.ts'
import type { Calendar } from '../../src/time/calendar.ts'
import { type Ordinal, ordinalAt } from '../../src/time/intervals.ts'
import { StoreTime } from '../../src/time/store-time.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Clocks that are changed at noon, at midnight, by half an hour, by a whole day, or never. */
const ZONES = [
  'UTC',
  'Europe/Prague',
  'America/New_York',
  'America/Sao_Paulo',
  'America/St_Johns',
  'America/Havana',
  'America/Santiago',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Asia/Tehran',
  'Asia/Amman',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Kiritimati',
  'Antarctica/Troll',
]

/** The date in a time zone, computed in another way than by the calendar. */
function dateIn(timeZone: string): (time: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  return (time) => format.format(time)
}

const iso = (time: number) => new Date(time).toISOString()
const intervalAt = (one: Calendar, time: string) => {
  const { start, end } = one.at(Date.parse(time))
  return `${iso(start)} ${(end - start) / HOUR}`
}

describe('intervals of a calendar', () => {
  test.each<[CalendarUnit, string, string, string]>([
    ['day', 'UTC', '2026-11-23T18:00Z', '2026-11-23T00:00:00.000Z 24'],
    ['week', 'UTC', '2026-11-23T18:00Z', '2026-11-23T00:00:00.000Z 168'],
    ['week', 'UTC', '2026-11-22T23:59:59.999Z', '2026-11-16T00:00:00.000Z 168'],
    ['month', 'UTC', '2024-02-29T12:00Z', '2024-02-01T00:00:00.000Z 696'],
    ['month', 'UTC', '2100-02-28T12:00Z', '2100-02-01T00:00:00.000Z 672'],
    ['month', 'UTC', '2026-12-31T23:59Z', '2026-12-01T00:00:00.000Z 744'],
    // Spring and autumn.
    ['day', 'Europe/Prague', '2026-03-29T12:00Z', '2026-03-28T23:00:00.000Z 23'],
    ['day', 'Europe/Prague', '2026-10-25T12:00Z', '2026-10-24T22:00:00.000Z 25'],
    ['week', 'Europe/Prague', '2026-03-29T12:00Z', '2026-03-22T23:00:00.000Z 167'],
    ['month', 'Europe/Prague', '2026-03-29T12:00Z', '2026-02-28T23:00:00.000Z 743'],
    // There was no midnight: the clocks were put forward from it.
    ['day', 'America/Sao_Paulo', '2018-11-04T12:00Z', '2018-11-04T03:00:00.000Z 23'],
    ['day', 'Asia/Beirut', '2024-03-31T12:00Z', '2024-03-30T22:00:00.000Z 23'],
    ['day', 'Africa/Cairo', '2024-04-26T12:00Z', '2024-04-25T22:00:00.000Z 23'],
    // It was 23:00 twice, so the day before continues.
    ['day', 'America/Sao_Paulo', '2018-02-17T12:00Z', '2018-02-17T02:00:00.000Z 25'],
    // It was 0:00 twice, so the day began with the first.
    ['day', 'America/Havana', '2024-11-03T12:00Z', '2024-11-03T04:00:00.000Z 25'],
    // The new day had begun when the clocks were put back into the old one.
    ['day', 'America/St_Johns', '2010-11-07T03:00Z', '2010-11-07T02:30:00.000Z 25'],
    ['day', 'Australia/Lord_Howe', '2024-04-07T00:00Z', '2024-04-06T13:00:00.000Z 24.5'],
    // There was no 30th of December.
    ['day', 'Pacific/Apia', '2011-12-30T12:00Z', '2011-12-30T10:00:00.000Z 24'],
    ['month', 'Pacific/Apia', '2011-12-30T12:00Z', '2011-12-01T10:00:00.000Z 720'],
  ])('the %s in %s at %s is %s h', (unit, timeZone, time, expected) => {
    expect(intervalAt(calendar(unit, { timeZone }), time)).toBe(expected)
  })

  test('weeks begin on the day that is asked for', () => {
    expect(intervalAt(calendar('week', { startsOn: 'sunday' }), '2026-11-23T18:00Z')).toBe('2026-11-22T00:00:00.000Z 168')
    expect(calendar('week', { startsOn: 'monday' }).id).toBe(calendar('week').id)
    expect(calendar('week', { startsOn: 'sunday' }).id).not.toBe(calendar('week').id)
  })

  const times = fc.integer({ min: Date.UTC(1972, 0), max: Date.UTC(2045, 0) })
  const units = fc.constantFrom<CalendarUnit>('day', 'week', 'month')

  test('hold the time, follow one another, and begin with a date that was not there before', { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), units, times, (timeZone, unit, time) => {
        const one = calendar(unit, { timeZone })
        const { ordinal, start, end } = one.at(time)
        expect(start).toBeLessThanOrEqual(time)
        expect(end).toBeGreaterThan(time)
        expect(one.of((ordinal + 1) as Ordinal).start).toBe(end)
        expect(one.of((ordinal - 1) as Ordinal).end).toBe(start)
        expect(one.at(end).start).toBe(end)
        expect(one.at(end - 1).ordinal).toBe(ordinal)
        const date = dateIn(timeZone)
        expect(date(start) > date(start - 1)).toBe(true)
        if (unit === 'month') expect(date(start).slice(0, 7)).not.toBe(date(start - 1).slice(0, 7))
        if (unit === 'month') expect(date(end - 1).slice(0, 7)).toBe(date(start).slice(0, 7))
        // Another object returns the same, whatever its earlier calls.
        const { start: again } = calendar(unit, { timeZone }).at(time)
        expect(again).toBe(start)
      }),
      { numRuns: 1_500 },
    )
  })

  test('a day is what its date is shown for, hour by hour', { timeout: 60_000 }, () => {
    const wrong: string[] = []
    for (const timeZone of ['America/Sao_Paulo', 'Asia/Beirut', 'Africa/Cairo', 'Australia/Lord_Howe', 'Atlantic/Azores', 'Pacific/Apia']) {
      const one = calendar('day', { timeZone })
      const date = dateIn(timeZone)
      let { start } = one.at(Date.UTC(2010, 0, 2))
      let latest = date(start)
      for (let time = start; time < Date.UTC(2012, 0, 2); time += HOUR) {
        const found = one.at(time)
        const shown = date(time)
        if (shown > latest) {
          if (time - found.start >= HOUR || found.start <= start) wrong.push(`${timeZone} ${iso(time)}`)
          start = found.start
          latest = shown
        } else if (found.start !== start) wrong.push(`${timeZone} ${iso(time)}`)
      }
    }
    expect(wrong).toEqual([])
  })

  test('no store takes a running one for over', { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), units, times, (timeZone, unit, time) => {
        const one = calendar(unit, { timeZone })
        const { ordinal, start, end } = one.at(time)
        expect(ordinal * one.usual).toBeGreaterThanOrEqual(start)
        expect((ordinal + 1) * one.usual).toBeGreaterThanOrEqual(end)
        expect((ordinal + 1) * one.usual - end).toBeLessThan(34 * DAY)
      }),
      { numRuns: 500 },
    )
  })

  test('a clock over it is right to the millisecond at each end, and goes back to the same time', { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), units, times, fc.double({ min: 0, max: 1e9, noNaN: true }), (timeZone, unit, time, origin) => {
        const one = calendar(unit, { timeZone })
        const clock = one.over(new StoreTime(time, origin))
        const { ordinal, start, end } = one.at(time)
        expect(ordinalAt(clock.at(origin), one.usual)).toBe(ordinal)
        expect(clock.monotonicAt((ordinal + 1) * one.usual) - origin).toBeCloseTo(end - time, 3)
        expect(clock.monotonicAt(ordinal * one.usual) - origin).toBeCloseTo(start - time, 3)
        expect(clock.monotonicAt(clock.at(origin))).toBeCloseTo(origin, 1)
        expect(ordinalAt(clock.at(origin + (end - time) + 1), one.usual)).toBe(one.at(end + 1).ordinal)
        expect(ordinalAt(clock.at(origin + (end - time) - 1), one.usual)).toBe(ordinal)
      }),
      { numRuns: 500 },
    )
  })
})

describe('options of a calendar', () => {
  test.each<[string, () => unknown]>([
    ['Option "calendar" is "year". Use "day", "week" or "month".', () => calendar('year' as 'day')],
    ['Option "calendar.timeZone" is "Mars/Olympus"', () => calendar('day', { timeZone: 'Mars/Olympus' })],
    ['Option "calendar.timeZone" is 60', () => calendar('day', { timeZone: 60 as never })],
    ['Remove "calendar.startsOn"', () => calendar('month', { startsOn: 'sunday' })],
    ['Option "calendar.startsOn" is "someday". Use a day', () => calendar('week', { startsOn: 'someday' as 'sunday' })],
    ['Unknown option "calendar.zone"', () => calendar('day', { zone: 'UTC' } as never)],
    ['Option "calendar" is "UTC". Use options', () => calendar('day', 'UTC' as never)],
  ])('%s', (message, make) => {
    expect(make).toThrow(message)
  })
})
