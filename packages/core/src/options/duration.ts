import { importOf, invalidOption, show, WeirError } from '../report/errors.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w'

/** Milliseconds, or a number with a unit: `'500ms'`, `'10s'`, `'1m'`, `'1.5h'`, `'1 day'`. */
export type Duration = number | `${number}${Unit}` | `${number} ${string}`

/** A thousand years, in milliseconds. A date this far ahead is still valid, and no store's clock overflows. */
const LONGEST = 1000 * 365.25 * 24 * 3_600_000

/** Milliseconds of each unit, by all its names. */
const UNITS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    'ms msec msecs millisecond milliseconds': 1,
    's sec secs second seconds': 1_000,
    'm min mins minute minutes': 60_000,
    'h hr hrs hour hours': 3_600_000,
    'd day days': 24 * 3_600_000,
    'w week weeks': 7 * 24 * 3_600_000,
    'y yr yrs year years': 365.25 * 24 * 3_600_000,
  }).flatMap(([names, length]) => names.split(' ').map((name) => [name, length] as const)),
)

/** A number, and the name of a unit. */
const FORM = /^(-?\d*\.?\d+) *([a-z]+)$/i
const LONGEST_TEXT = 100

/**
 * Milliseconds of a duration.
 *
 * @param option the option's name, for the message
 * @param least the smallest allowed value in milliseconds
 * @param most the largest allowed value in milliseconds; default: a thousand years
 * @throws WeirError `WEIR_INVALID_OPTION` when it is no duration from `least` to `most`
 */
export function parseDuration(value: unknown, option: string, least: number, most: number = LONGEST): number {
  const allowed = `a number of milliseconds or a string such as "500ms", "10s" or "1h", from ${least} ms to ${most === LONGEST ? '1000 years' : `${most} ms`}`
  let parsed: unknown = value
  if (typeof value === 'string') {
    const use = insteadOf(value.trim(), option, least)
    if (use !== undefined) throw new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${show(value)}, ${use}`)
    if (value.trim() === '' || !Number.isNaN(Number(value))) throw invalidOption(option, value, allowed)
    // In floating point, "0.07s" is 70.00000000000001 ms. It must equal "70ms" in every process.
    const [, amount, unit = ''] = (value.length <= LONGEST_TEXT && FORM.exec(value)) || []
    parsed = Number((Number(amount) * (UNITS.get(unit.toLowerCase()) ?? Number.NaN)).toPrecision(15))
  }
  if (typeof parsed !== 'number' || !(parsed >= least && parsed <= most)) throw invalidOption(option, value, allowed)
  return parsed
}

/** The advice for a text that has a meaning but is no duration. */
function insteadOf(text: string, option: string, least: number): string | undefined {
  // A number without a unit could be meant as seconds.
  if (/^\d+$/.test(text)) return `which has no unit. Use "${text}s", or the number ${text} for milliseconds (at least ${least} ms).`
  if (/^\d* *(?:mo|mon|months?)$/i.test(text)) {
    const days = `but months differ in length. Use "${30 * (Number.parseInt(text, 10) || 1)}d"`
    return option.endsWith('interval') ? `${days}, or calendar("month"). ${importOf('calendar')}` : `${days}.`
  }
  const [, unit] = /^(?:(?:an?|per|every|each) )?(second|minute|hour|day|week|year)$/i.exec(text) ?? []
  return unit === undefined ? undefined : `which has no number. Use "1 ${unit.toLowerCase()}".`
}
