import type { CountsSynced } from '../counting/site.ts'
import type { SyncEntry, SyncResult } from '../store/contract.ts'
import type { ThrottlerState } from '../throttler/coordinator.ts'
import type { Clock } from '../time/clock.ts'

/** The parts of the coordinator that a query of a key's usage needs. */
export interface UsageHost {
  readonly clock: Clock
  readonly link: { readonly state: ThrottlerState }
  readonly loop: {
    /** Milliseconds that an answer of the store usually takes. */
    readonly usual: number
    inquire(entry: SyncEntry): Promise<SyncResult | undefined>
  }
}

/** Other processes have at least this time to send their counts of a key, in milliseconds, or this many usual round trips. */
const LEAST_WAIT = 30
const WAIT_TIMES = 4
/** Milliseconds before a failed sync is repeated. */
const AGAIN = 50

/**
 * Reads the units of a key that all processes together have used. First the others are requested to send their counts, however few they
 * are. Then the store returns the total.
 *
 * @param storeTimeout milliseconds
 * @returns undefined if the store did not answer within `storeTimeout`
 */
export function askUsage(meter: CountsSynced, id: string, storeTimeout: number, host: UsageHost): Promise<SyncResult | undefined> {
  const { clock, link } = host
  // A store that is already down gets one attempt. If it fails only during the query, it may still answer in time.
  let isLast = link.state === 'storeDown'
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      isLast = true
      resolve(undefined)
    }, storeTimeout)
    const again = (): void =>
      void ask(meter, id, host).then((result) => {
        if (result === undefined && !isLast && link.state !== 'closed') clock.setTimeout(again, AGAIN)
        else {
          clock.clearTimeout(timer)
          resolve(result)
        }
      })
    again()
  })
}

async function ask(meter: CountsSynced, id: string, { clock, loop }: UsageHost): Promise<SyncResult | undefined> {
  meter.syncKey(id, clock.monotonic())
  const first = await loop.inquire({ ...entryOf(meter, id), ask: true })
  if (first === undefined) return undefined
  if (first.epoch !== undefined) meter.syncedBlocks.reset(id, first.epoch, clock.monotonic())
  await new Promise<void>((resolve) => {
    clock.setTimeout(resolve, Math.max(LEAST_WAIT, WAIT_TIMES * loop.usual))
  })
  const last = await loop.inquire(entryOf(meter, id))
  // For leases the reply contains the used units separately.
  return last?.lease === undefined
    ? last
    : { ...last, cells: meter.askedCells().map((cell) => ({ ...cell, taken: last.lease?.used ?? 0 })) }
}

/** A key write that only reads. */
export function entryOf(meter: CountsSynced, id: string): SyncEntry {
  const lease = meter.askedLease?.(id)
  return lease === undefined ? meter.syncedBlocks.entryOf(id, meter.askedCells()) : { policy: meter.storePolicy, key: id, cells: [], lease }
}
