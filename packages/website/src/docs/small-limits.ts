import type { PolicyOptions } from '@weir/core'
import { bursts, simulate } from '@weir/testing'
import { type Figure, whole } from './figure.ts'

const NODES = [3, 12, 50]
/** Requests of a volley, and its length in milliseconds. */
const VOLLEY = 1_000
const WIDTH = 10
/** Number of volleys with each seed. */
const VOLLEYS = 20
const SEEDS = [1, 2, 3, 4, 5]

/** The most requests of a volley on an idle key that are allowed. */
async function worst(policy: PolicyOptions, nodes: number): Promise<number> {
  let most = 0
  for (const seed of SEEDS) {
    const { measured } = await simulate({
      policy,
      nodes,
      warmup: 0,
      intervals: 2 * VOLLEYS,
      load: bursts({ size: VOLLEY, every: 2, phase: 0.3, width: WIDTH }),
      seed,
    })
    most = Math.max(most, ...measured.map(({ allowed }) => allowed))
  }
  return most
}

/** The requests that are allowed if many come at the same moment and the limit is small. */
export const smallLimits: Figure = {
  name: 'small-limits',
  makes: ['small-limits', 'small-limits-leases'],
  about: 'what volleys get through, by limit and nodes',
  async make() {
    return {
      tables: {
        'small-limits': await table('limit', {}),
        'small-limits-leases': await table("limit with `'leased'`", { coordination: 'leased', failMode: 'closed' }),
      },
    }
  },
}

async function table(name: string, options: Partial<PolicyOptions>): Promise<string[][]> {
  const rows = [[name, ...NODES.map((nodes) => `${nodes} nodes`)]]
  for (const limit of [1, 5, 20, 100]) {
    const row = [whole(limit)]
    for (const nodes of NODES) row.push(whole(await worst({ limit, interval: 10_000, ...options }, nodes)))
    rows.push(row)
  }
  return rows
}
