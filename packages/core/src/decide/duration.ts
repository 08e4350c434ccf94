import ms from 'ms'
import { invalidOption } from '../report/errors.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w'

/** Milliseconds, or a number with a unit: `'500ms'`, `'10s'`, `'1m'`, `'1.5h'`, `'1 day'`. */
export type Duration = number | `${number}${Unit}` | `${number} ${string}`

/**
 * Milliseconds of a duration.
 *
 * @param option the option's name, for the message
 * @param least the smallest allowed value in milliseconds
 * @throws WeirError `WEIR_INVALID_OPTION` when it is no finite duration of at least `least`
 */
export function parseDuration(value: unknown, option: string, least: number): number {
  const allowed = `a number of milliseconds or a string such as "500ms", "10s", "1m" or "1h", at least ${least} ms`
  let parsed: unknown = value
  if (typeof value === 'string') {
    // A bare number in a string has no unit: "60" could be meant as seconds.
    if (value.trim() === '' || !Number.isNaN(Number(value))) throw invalidOption(option, value, allowed)
    parsed = ms(value as ms.StringValue)
  }
  if (typeof parsed !== 'number' || !Number.isFinite(parsed) || parsed < least) throw invalidOption(option, value, allowed)
  return parsed
}
