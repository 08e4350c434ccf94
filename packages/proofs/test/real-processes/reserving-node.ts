// A separate process that opens reservations and is then killed.
import { type Place, storeAt } from '@weir/bench/stores/place'
import { createThrottler } from '@weir/core'

/** The policy of the process and of its parent. */
export interface Reserving {
  readonly place: Place
  readonly coordination: 'central' | 'leased'
  readonly count: number
  readonly ttl: number
}

/** Units of each reservation, and units that a third of them report as used. */
export const [UNITS, USED] = [100, 7]

export function policyOf({ coordination }: Reserving) {
  // A long interval, so that hardly any test meets its end.
  return { name: 'tokens', limit: 1_000_000, interval: '1d', coordination, storeTimeout: '10s' } as const
}

async function reserveAll(task: Reserving): Promise<void> {
  const throttler = createThrottler({ policies: [policyOf(task)], store: await storeAt(task.place, 10_000) }).start()
  const receipts = await Promise.all(
    Array.from({ length: task.count }, (_, i) =>
      throttler.reserveAsync('key', { cost: { tokens: UNITS }, ttl: task.ttl, expire: i % 3 === 1 ? 'refund' : 'charge' }),
    ),
  )
  for (const [i, receipt] of receipts.entries()) if (i % 3 === 2) receipt.used({ tokens: USED })
  process.send?.(receipts.filter(({ isOpen }) => isOpen).length)
}

if (process.send !== undefined && process.argv[2] === 'reserve') {
  process.once('message', (task: Reserving) => void reserveAll(task))
  process.once('disconnect', () => process.exit())
}
