import { WeirError } from '../report/errors.ts'
import { meantBy } from './did-you-mean.ts'

/**
 * @param what that has options of these names, at the beginning of a sentence
 * @param hint tells of some names better than that they look like another
 * @param at goes before the name of an option
 * @throws WeirError `WEIR_UNKNOWN_OPTION` for a property that is none of `names`
 */
export function checkNames(
  what: string,
  options: object,
  names: Iterable<string>,
  hint?: (option: string) => string | undefined,
  at = '',
): void {
  const known = [...names]
  for (const option of Object.keys(options)) {
    if (known.includes(option)) continue
    const meant = hint?.(option) ?? meantBy(option, known)
    throw new WeirError(
      'WEIR_UNKNOWN_OPTION',
      `Unknown option "${at}${option}".${meant === undefined ? '' : ` ${meant}`} ${what} has: ${known.join(', ')}.`,
    )
  }
}
