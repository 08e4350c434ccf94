import { isSyncedEarly } from '../../decide/coordination.ts'
import { WeirError } from '../../report/errors.ts'
import { show } from '../../report/show.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'

/**
 * Warns once for each policy whose limit is less than two units per process, because each process decides simultaneous requests before
 * the others' counts arrive. Other coordinations are left out: their requests wait for the store, or the user chose separate counts.
 *
 * @param nodes live processes
 */
export function noticeSmallLimits(throttlers: readonly Coordinated[], nodes: number): void {
  if (nodes < 2) return
  for (const throttler of throttlers) {
    for (const { policy } of throttler.limiters) {
      const { name, limit } = policy
      if (!isSyncedEarly(policy) || limit >= 2 * nodes) continue
      const most = Math.floor(limit) * nodes
      throttler.warn(
        new WeirError(
          'WEIR_WARN_SMALL_LIMIT',
          `The "limit" of policy ${show(name)} is ${limit}, less than 2 for each of ${nodes} processes: a client that sends many requests at the same moment may get up to ${most} through. If that matters, use coordination: "leased", or route each client to one process.`,
        ),
        name,
      )
    }
  }
}
