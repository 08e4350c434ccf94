import { stepOf } from '../decide/check-algorithm.ts'
import { isDecidedByStore } from '../decide/coordination.ts'
import type { Policy } from '../decide/policy.ts'
import { show, WeirError } from '../report/errors.ts'
import type { Store } from './coordinator.ts'

/** @throws WeirError `WEIR_INVALID_OPTION` for a policy whose requests the store must decide, but can't */
export function checkDecides(policies: readonly Policy[], store: Store | undefined): void {
  for (const policy of policies) {
    const { name, algorithm, calendar } = policy
    const step = calendar === undefined ? stepOf(algorithm) : 'calendar'
    if (!isDecidedByStore(policy) || store?.decides?.(step ?? '') === true) continue
    const what = `Option "coordination" of policy ${show(name)} is "central", but the store ${show(store?.kind)}`
    throw new WeirError('WEIR_INVALID_OPTION', `${what} can't decide by ${algorithm.name}. Use another coordination or store.`)
  }
}
