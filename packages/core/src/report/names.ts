import { meantBy } from './did-you-mean.ts'
import { invalidOption, WeirError } from './errors.ts'

/**
 * @param what has options of these names
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
      `Unknown option "${at}${option}".${meant === undefined ? '' : ` ${meant}`} ${known.length === 0 ? `Remove it: ${what} has no options` : `${what} has: ${known.join(', ')}`}.`,
    )
  }
}

/**
 * Checks what a function was given as its options.
 *
 * @param of the function's name
 * @param allowed what it must be, for messages
 * @param at goes before the name of an option
 * @throws WeirError `WEIR_INVALID_OPTION` for no object, `WEIR_UNKNOWN_OPTION` for a property that is none of `names`
 */
export function checkOptions(of: string, options: unknown, names: readonly string[], allowed: string, at?: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw invalidOption(of, options, allowed)
  checkNames(`${of}()`, options, names, undefined, at)
}

/**
 * As `checkOptions`, for an algorithm. Limiters of other libraries take a limit and an interval where these are.
 *
 * @param example options that it may have; undefined where it has none
 */
export function checkAlgorithmOptions(of: string, options: unknown, names: readonly string[], example?: string): void {
  const allowed = example === undefined ? `${of}() without options` : `options such as ${example}`
  checkOptions(of, options, names, `${allowed}. "limit" and "interval" are options of the policy`)
}
