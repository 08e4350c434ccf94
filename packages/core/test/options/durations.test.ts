import fc from 'fast-check'
import ms from 'ms'
import { describe, expect, test } from 'vitest'
import { parseDuration } from '../../src/options/duration.ts'
import { thrownBy } from '../support/nodes.ts'

describe('a duration is a number of milliseconds or a string with a unit', () => {
  test.each([
    [1, 1],
    [0.5, 0.5],
    [86_400_000, 86_400_000],
    ['500ms', 500],
    ['10s', 10_000],
    ['1m', 60_000],
    ['1 m', 60_000],
    ['1.5h', 5_400_000],
    ['1 day', 86_400_000],
    ['2 weeks', 1_209_600_000],
  ])('%j is %d ms', (given, expected) => {
    expect(parseDuration(given, 'interval', 0)).toBe(expected)
  })
})

describe('anything else is rejected, naming the option, what was given and what is allowed', () => {
  test.each([
    ['60', '"60"'],
    ['1e3', '"1e3"'],
    ['0x10', '"0x10"'],
    ['Infinity', '"Infinity"'],
    ['', '""'],
    ['  ', '"  "'],
    ['soon', '"soon"'],
    ['10 parsecs', '"10 parsecs"'],
    ['1m 30s', '"1m 30s"'],
    ['-1m', '"-1m"'],
    [`${'1'.repeat(200)}ms`, '"1111'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [-1, '-1'],
    [9, '9'],
    ['9ms', '"9ms"'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [10n, '10'],
    [[10], '[10]'],
    [{ minutes: 1 }, '{"minutes":1}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [() => 10, 'function'],
  ])('%s', (given, shown) => {
    const error = thrownBy(() => parseDuration(given, 'interval', 10))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain('"interval"')
    expect(error.message).toContain(shown)
    expect(error.message).toMatch(/from 10 ms to 1000 years|at least 10 ms/)
  })

  test('the least value itself is allowed', () => {
    expect(parseDuration(10, 'interval', 10)).toBe(10)
  })
})

describe('strings have the units, names and forms of the package ms, which users know', () => {
  const names = ['ms', 'msec', 'msecs', 'millisecond', 'milliseconds', 's', 'sec', 'secs', 'second', 'seconds', 'm', 'min', 'mins']
  const more = ['minute', 'minutes', 'h', 'hr', 'hrs', 'hour', 'hours', 'd', 'day', 'days', 'w', 'week', 'weeks', 'y', 'yr', 'yrs', 'year']
  const units = [...names, ...more, 'years', 'mo', 'month', 'µs', 'us', 'weekss', 'constructor', '']

  /** The result of `ms`, to 15 digits. Undefined for texts that it does not read, and for a number without a unit. */
  function expected(text: string): number | undefined {
    const length = text.trim() === '' || !Number.isNaN(Number(text)) ? undefined : (ms(text as ms.StringValue) as number | undefined)
    return length === undefined ? undefined : Number(length.toPrecision(15))
  }

  function parsed(text: string): number | undefined {
    try {
      return parseDuration(text, 'interval', -1e300, 1e300)
    } catch {
      return undefined
    }
  }

  test.each(units)('"%s" in any case', (unit) => {
    for (const text of [`2${unit}`, `0.07 ${unit}`, `.5  ${unit.toUpperCase()}`, `-1.5${unit}`]) {
      expect(parsed(text), text).toBe(expected(text))
    }
  })

  test('any text', () => {
    const number = fc.oneof(fc.stringMatching(/^-?[0-9]{0,4}\.?[0-9]{0,4}$/), fc.stringMatching(/^[-+.0-9e]{0,6}$/))
    const pieces = fc.tuple(fc.constantFrom('', ' ', '\n'), number, fc.constantFrom('', ' ', '  ', '\t', '\n'), fc.constantFrom(...units))
    const text = fc.oneof(
      pieces.map((parts) => parts.join('')),
      fc.tuple(pieces, fc.string()).map(([parts, rest]) => parts.join('') + rest),
    )
    fc.assert(fc.property(text, (one) => void expect(parsed(one), one).toBe(expected(one))))
  })
})
