import type { AnyAlgorithm, Coordination } from '../algorithms/algorithm.ts'
import { FIXED_WINDOW } from '../algorithms/fixed-window/epoch.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { alternatives } from '../report/show.ts'

/** The requested algorithm, or fixed windows by default. */
export function checkAlgorithm(option: string, given: unknown): AnyAlgorithm {
  if (given === undefined) return FIXED_WINDOW
  const { name, id, local, shape } = (typeof given === 'object' && given !== null ? given : {}) as Partial<AnyAlgorithm>
  const counts = typeof local === 'function' || (local === undefined && shape !== undefined)
  const made = counts && (shape === undefined || Array.isArray(shape?.coordinations))
  if (typeof name !== 'string' || typeof id !== 'string' || !/^[a-z\d-]{1,64}$/.test(id) || !made) {
    const allowed = 'an algorithm such as fixedWindow() or slidingWindow(), with an id of letters, digits and dashes'
    throw invalidOption(option, given, allowed, typeof given === 'function' ? 'It is a function: call it.' : '')
  }
  const { fields = 1 } = given as AnyAlgorithm
  if (!Number.isInteger(fields) || fields < 1 || fields > MOST_FIELDS) {
    throw invalidOption(`${option}.fields`, fields, `a whole number from 1 to ${MOST_FIELDS}`)
  }
  return given as AnyAlgorithm
}

/** The most numbers per key. No algorithm needs more, and a table of many keys still fits in memory. */
const MOST_FIELDS = 1000

const COORDINATIONS: readonly Coordination[] = ['background', 'periodic', 'local', 'leased', 'central']

const MEANINGS: Readonly<Record<Coordination, string>> = {
  background: 'counts are synced in the background',
  periodic: 'counts are synced at the end of each span',
  local: 'each process counts alone',
  leased: 'each process takes quota ahead',
  central: 'the store decides each request',
}

/**
 * The requested coordination, or the default.
 *
 * @param shared whether there is a store
 */
export function checkCoordination(option: string, given: unknown, algorithm: AnyAlgorithm, shared: boolean): Coordination {
  const possible = COORDINATIONS.filter((one) => can(algorithm, one))
  if (given === undefined) {
    const usual = shared ? 'background' : 'local'
    if (possible.includes(usual)) return usual
    const cannot = usual === 'local' ? "can't count without a store" : "can't sync in the background, the default with a store"
    const meant = possible.map((one) => `"${one}" (${MEANINGS[one]})`).join(' or ')
    throw new WeirError('WEIR_MISSING_OPTION', `${algorithm.name} ${cannot}. Set "${option}" to ${meant}.`)
  }
  if (!(COORDINATIONS as readonly unknown[]).includes(given)) throw invalidOption(option, given, alternatives(possible))
  if (!(possible as readonly unknown[]).includes(given)) {
    const what = `Option "${option}" is ${show(given)}; ${algorithm.name} supports ${alternatives(possible, 'and')}`
    throw new WeirError('WEIR_INVALID_OPTION', `${what}. Use one of those, or fixedWindow() for ${show(given)}.`)
  }
  if (!shared && given !== 'local') {
    const add = 'Add one, e.g. store: redisStore("redis://localhost:6379"), or use "local"'
    throw new WeirError('WEIR_MISSING_OPTION', `Option "${option}" is ${show(given)}, which needs a "store". ${add}.`)
  }
  return given as Coordination
}

/**
 * The id of the step that a store runs for each request by this algorithm. The step of the default algorithm belongs to the code that calls
 * the store.
 */
export function stepOf(algorithm: AnyAlgorithm): string | undefined {
  return algorithm === FIXED_WINDOW ? algorithm.id : algorithm.step?.id
}

/** With `central`, a policy also has a local meter for the counts of this process. */
function can(algorithm: AnyAlgorithm, coordination: Coordination): boolean {
  if (coordination !== 'local' && coordination !== 'central') return algorithm.shape?.coordinations.includes(coordination) === true
  return algorithm.local !== undefined && (coordination === 'local' || stepOf(algorithm) !== undefined)
}
