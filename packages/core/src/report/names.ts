import { meantBy } from './did-you-mean.ts'
import { invalidOption, WeirError } from './errors.ts'

/**
 * @param what the owner of the options, for messages
 * @param hint returns the advice for an unknown name. It takes precedence over similar names
 * @param at goes before the name of an option
 * @throws WeirError `WEIR_UNKNOWN_OPTION` for a property that is not in `names`
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
 * Checks the options that a function got.
 *
 * @param of the function's name
 * @param allowed the values that are allowed, for messages
 * @param at goes before the name of an option
 * @throws WeirError `WEIR_INVALID_OPTION` if `options` is no object, `WEIR_UNKNOWN_OPTION` for a property that is not in `names`
 */
export function checkOptions(of: string, options: unknown, names: readonly string[], allowed: string, at?: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw invalidOption(of, options, allowed)
  checkNames(`${of}()`, options, names, undefined, at)
}

/**
 * Does the same as `checkOptions` for an algorithm. Its message mentions the policy, because limiters of other libraries accept a limit and
 * an interval here.
 *
 * @param example options that it may have; undefined if it has none
 */
export function checkAlgorithmOptions(of: string, options: unknown, names: readonly string[], example?: string): void {
  const allowed = example === undefined ? `${of}() without options` : `options such as ${example}`
  checkOptions(of, options, names, `${allowed}. "limit" and "interval" are options of the policy`)
}
