import type { Coordination } from '../algorithms/algorithm.ts'
import type { Policy } from './policy.ts'

/** The part of a policy or its options that decides where requests are counted. */
interface Coordinated {
  readonly coordination?: Coordination | undefined
}

/*
 * The differences between coordinations that matter above this room. No other code compares their names, so a new coordination is added here.
 */

/** Whether a store has counts of the policy. */
export function countsAtStore({ coordination }: Coordinated): boolean {
  return coordination !== 'local'
}

/** Whether the store decides each request. */
export function isDecidedByStore({ coordination }: Coordinated): boolean {
  return coordination === 'central'
}

/** Whether a process takes quota ahead, and a request without quota here waits for the store. */
export function takesQuotaAhead({ coordination }: Coordinated): boolean {
  return coordination === 'leased'
}

/** Whether a request may wait for the store. */
export function waitsForStore(policy: Coordinated): boolean {
  return isDecidedByStore(policy) || takesQuotaAhead(policy)
}

/**
 * Whether all keys of a policy can be reset at once. At a store, a key's counts are reset by the next ones that a process sends, which must
 * belong to the same interval.
 */
export function resetsAllKeys({ algorithm, coordination }: Pick<Policy, 'algorithm' | 'coordination'>): boolean {
  const kind = algorithm.shape?.kind
  return !countsAtStore({ coordination }) || ((kind === 'window' || kind === 'two-windows') && !waitsForStore({ coordination }))
}

/** Whether counts are synced as soon as they matter to other processes, without delaying requests. */
export function isSyncedEarly({ coordination }: Coordinated): boolean {
  return coordination === 'background'
}

/** Whether counts are synced only at the ends of spans. */
export function isSyncedBySpans({ coordination }: Coordinated): boolean {
  return coordination === 'periodic'
}
