import ms from 'ms'
import { invalidOption } from '../report/errors.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w'

/** Milliseconds, or a number with a unit: `'500ms'`, `'10s'`, `'1m'`, `'1.5h'`, `'1 day'`. */
export type Duration = number | `${number}${Unit}` | `${number} ${string}`

/** A thousand years, in milliseconds: a date that lies so far ahead still is one, and no store's clock overflows. */
const LONGEST = 1000 * 365.25 * 24 * 3_600_000

/**
 * Milliseconds of a duration.
 *
 * @param option the option's name, for the message
 * @param least the smallest allowed value in milliseconds
 * @param most the largest allowed value in milliseconds; default: a thousand years
 * @throws WeirError `WEIR_INVALID_OPTION` when it is no duration from `least` to `most`
 */
export function parseDuration(value: unknown, option: string, least: number, most: number = LONGEST): number {
  const allowed = `a number of milliseconds or a string such as "500ms", "10s", "1m" or "1h", at least ${least} ms and at most ${most === LONGEST ? '1000 years' : `${most} ms`}`
  let parsed: unknown = value
  if (typeof value === 'string') {
    // A bare number in a string has no unit: "60" could be meant as seconds.
    if (value.trim() === '' || !Number.isNaN(Number(value))) throw invalidOption(option, value, allowed)
    // "0.07s" is 70.00000000000001 ms to a computer: it must be what "70ms" is, in every process.
    const length: unknown = ms(value as ms.StringValue)
    parsed = typeof length === 'number' ? Number(length.toPrecision(15)) : length
  }
  if (typeof parsed !== 'number' || !(parsed >= least && parsed <= most)) throw invalidOption(option, value, allowed)
  return parsed
}
