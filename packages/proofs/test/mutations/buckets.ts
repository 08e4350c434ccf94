import { faults, outages, poisson, type Scenario, simulate, squareWave } from '@weir/testing'
import { bucketOf } from '../../src/accuracy/bucket-steady.ts'
import { MIDDLE } from '../../src/accuracy/settings.ts'

/** Finds excess units in the store or a process for a bucket, in the runs of `roughly`. Returns sentences. */
export function neverTooMuch(...kinds: readonly (keyof typeof roughly)[]): () => Promise<readonly string[]> {
  return async () => {
    const found: string[] = []
    for (const kind of kinds) {
      const { toldTooMuch, rejectedWithRoom, debt } = await simulate({
        ...bucketOf(MIDDLE, 0.9, { intervals: 10, quick: true }, { nodes: 6, ...roughly[kind] }),
      })
      if (toldTooMuch > 1e-6) found.push(`${kind}: the store's level is ${toldTooMuch} units above what was allowed`)
      if (kind.startsWith('data lost') && debt.max > 0.12) found.push(`${kind}: ${Math.round(100 * debt.max)} % of the limit too much`)
      if (kind !== 'outages' && rejectedWithRoom > 0) found.push(`${kind}: ${rejectedWithRoom} requests were rejected while there was room`)
    }
    return found
  }
}

const roughly = {
  trickles: { load: squareWave({ low: 0.3, high: 12, period: 2, duty: 0.2 }) },
  outages: { load: poisson(1.2), faults: outages({ length: 1.5, pause: 2 }), network: { duplication: 0.3, loss: 0.1 } },
  // The load is so high that a forgotten full bucket is noticed.
  'data lost': { load: poisson(3), faults: faults({ kind: 'data-loss', at: 5.1 }) },
  'data lost at another moment': { load: poisson(3), faults: faults({ kind: 'data-loss', at: 5.4 }) },
  'one node cut off': { load: poisson(0.95), faults: faults({ kind: 'partition', node: 2, from: 3, until: 5.6 }) },
} as const satisfies Record<string, Partial<Scenario>>
