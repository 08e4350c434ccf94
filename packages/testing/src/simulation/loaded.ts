import { createThrottler, memoryStore, type PolicyOptions } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'

/**
 * Loads what a policy needs that comes with the first of its kind only. That takes real time, in which virtual time stands: without
 * it the algorithm's local meter would stand in for the real one during a whole simulation.
 */
export async function loaded(policy: PolicyOptions<unknown>): Promise<void> {
  await adapterOf(createThrottler({ policies: [policy], store: memoryStore() })).inspected.coordinator?.loading
}
