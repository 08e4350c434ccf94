import { stepOf } from '../decide/check-algorithm.ts'
import type { Policy } from '../decide/policy.ts'
import { show, WeirError } from '../report/errors.ts'
import type { Store } from './coordinator.ts'

/** @throws WeirError `WEIR_INVALID_OPTION` for a policy whose requests the store is to decide about, and can't */
export function checkDecides(policies: readonly Policy[], store: Store | undefined): void {
  for (const { name, algorithm, coordination, calendar } of policies) {
    const step = calendar === undefined ? stepOf(algorithm) : 'calendar'
    if (coordination !== 'central' || store?.decides?.(step ?? '') === true) continue
    const what = `Option "coordination" of policy ${show(name)} is "central", but the store ${show(store?.kind)}`
    throw new WeirError('WEIR_INVALID_OPTION', `${what} can't decide by ${algorithm.name}. Use another coordination or store.`)
  }
}
