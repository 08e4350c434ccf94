import type { AnyAlgorithm, Coordination } from '../algorithms/algorithm.ts'
import { FIXED_WINDOW } from '../algorithms/fixed-window/epoch.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'

/** The algorithm that is asked for; fixed windows where none is. */
export function checkAlgorithm(option: string, given: unknown): AnyAlgorithm {
  if (given === undefined) return FIXED_WINDOW
  const {
    name,
    id,
    local,
    background,
    periodic: spans,
    leased: leases,
  } = (typeof given === 'object' && given !== null ? given : {}) as Partial<AnyAlgorithm>
  const forms = [local, background, spans, leases]
  const made = forms.every((form) => form === undefined || typeof form === 'function') && forms.some((form) => form !== undefined)
  if (typeof name !== 'string' || typeof id !== 'string' || !/^[a-z\d-]{1,64}$/.test(id) || !made) {
    const hint = typeof given === 'function' ? '; it is a function, which must be called' : ''
    throw invalidOption(
      option,
      given,
      `an algorithm such as fixedWindow() or slidingWindow(), with an id of letters, digits and dashes${hint}`,
    )
  }
  const { fields = 1 } = given as AnyAlgorithm
  if (!Number.isInteger(fields) || fields < 1 || fields > MOST_FIELDS) {
    throw invalidOption(`${option}.fields`, fields, `a whole number from 1 to ${MOST_FIELDS}`)
  }
  return given as AnyAlgorithm
}

/** Numbers per key: more than any count needs, and few enough for a table of many keys. */
const MOST_FIELDS = 1000

const COORDINATIONS: readonly Coordination[] = ['background', 'periodic', 'local', 'leased', 'central']

/**
 * The coordination that is asked for, or the usual one.
 *
 * @param shared whether there is a store
 */
export function checkCoordination(option: string, given: unknown, algorithm: AnyAlgorithm, shared: boolean): Coordination {
  const possible = COORDINATIONS.filter((one) => can(algorithm, one))
  const instead = possible.map((one) => JSON.stringify(one)).join(' or ')
  if (given === undefined) {
    const usual = shared ? 'background' : 'local'
    if (possible.includes(usual)) return usual
    throw new WeirError('WEIR_MISSING_OPTION', `Option "${option}" is missing: ${algorithm.name} can't be "${usual}"; give ${instead}.`)
  }
  if (!(COORDINATIONS as readonly unknown[]).includes(given)) throw invalidOption(option, given, instead)
  if (!(possible as readonly unknown[]).includes(given)) throw invalidOption(option, given, `${instead} with ${algorithm.name}`)
  if (!shared && given !== 'local')
    throw new WeirError('WEIR_MISSING_OPTION', `Option "${option}" is ${show(given)}, which needs a "store"; there is none.`)
  return given as Coordination
}

/** The id of what a store does for each request by this algorithm. The default one's comes with what asks the store. */
export function stepOf(algorithm: AnyAlgorithm): string | undefined {
  return algorithm === FIXED_WINDOW ? algorithm.id : algorithm.step?.id
}

/** A policy whose requests the store decides about has a local meter beside: for what is known of it here. */
function can(algorithm: AnyAlgorithm, coordination: Coordination): boolean {
  if (coordination !== 'central') return algorithm[coordination] !== undefined
  return stepOf(algorithm) !== undefined && algorithm.local !== undefined
}
