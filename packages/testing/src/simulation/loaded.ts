import { createThrottler, memoryStore, type PolicyOptions } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'

/**
 * Loads the code that comes only with the first policy of its kind. Loading takes real time, in which virtual time stands still.
 * Otherwise the algorithm's local meter would be used instead of the real one for the whole simulation.
 */
export async function loaded(policy: PolicyOptions<unknown>): Promise<void> {
  await adapterOf(createThrottler({ policies: [policy], store: memoryStore() })).inspected.coordinator?.loading
}
