import { WeirError } from '../report/errors.ts'
import { nearest } from './did-you-mean.ts'

/** @throws WeirError `WEIR_UNKNOWN_OPTION` for a property that is none of `names` */
export function checkNames(what: string, options: object, names: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue
    const near = nearest(name, names)
    const hint = near === undefined ? '' : ` Did you mean "${near}"?`
    throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${name}".${hint} ${what} has: ${names.join(', ')}.`)
  }
}
