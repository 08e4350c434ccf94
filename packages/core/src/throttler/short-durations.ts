import type { PolicyOptions } from '../decide/policy.ts'
import { WeirError } from '../report/errors.ts'
import { show } from '../report/show.ts'

/**
 * Warns once of each policy whose `interval` or `cooldown` is a number that probably means seconds: less than a second, or whole quarters
 * of an hour in seconds. A text such as `'60ms'` has only one meaning.
 */
export function noticeShortDurations(rules: readonly PolicyOptions<never>[], warn: (error: WeirError, subject: string) => void): void {
  for (const { name = 'default', ...rule } of rules) {
    for (const option of ['interval', 'cooldown'] as const) {
      const given = rule[option]
      if (typeof given !== 'number' || given === 0 || (given >= 1_000 && (given % 900 !== 0 || given % 1_000 === 0))) continue
      const message = `Option "${option}" of policy ${show(name)} is the number ${given}, which means ${given} milliseconds. Use "${given}s" if you mean seconds, or "${given}ms" if you mean milliseconds.`
      warn(new WeirError('WEIR_WARN_SHORT_DURATION', message), `${name} ${option}`)
    }
  }
}
