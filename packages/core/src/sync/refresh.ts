import type { SyncEntry, SyncResult } from '../store/contract.ts'
import type { MeterKey } from '../throttler/coordinator.ts'
import type { StoreState } from './link/state.ts'
import { entryOf } from './usage.ts'

/**
 * Reads keys from the store, and takes over their units and blocks as if another process had announced them.
 *
 * @returns when all answers have come, or the store has failed
 */
export async function refreshKeys(
  keys: readonly MeterKey[],
  loop: { inquire(entry: SyncEntry): Promise<SyncResult | undefined> },
  link: Pick<StoreState, 'announced'>,
): Promise<void> {
  await Promise.all(
    keys.map(async ({ meter: { counts }, id }) => {
      // Leases need no news: the store grants their units.
      if (counts === undefined || counts.askedLease !== undefined) return
      const result = await loop.inquire(entryOf(counts, id))
      if (result === undefined) return
      const { cells, blocked, epoch, manual } = result
      const of = { policyId: counts.storePolicy.id, key: id, ...(epoch !== undefined && { epoch }) }
      if (cells.some(({ taken }) => taken > 0)) link.announced({ type: 'total', ...of, cells })
      if (blocked > 0) link.announced({ type: 'block', ...of, remaining: blocked, ...(manual && { manual }) })
    }),
  )
}
