import type { Coordination } from '@weir/core'
import { mostAllowed, reactionTime } from '../attack/bound.ts'
import { atLeast, atMost, type Figure } from '../goal.ts'
import { BudgetCluster, type Process } from './cluster.ts'

const PROCESSES = 8
const CALLS = 100
/** Tokens per interval, of which the calls reserve about twice as many. */
const LIMIT = 5_000
const INTERVAL = 10_000
const MOST_TOKENS = 150

/** Calls that are open at the same time, each of 50 to 150 tokens. They begin within `width` milliseconds, in each of some intervals. */
export async function race(coordination: Coordination, width: number, intervals: number, seed: number): Promise<readonly Figure[]> {
  const policy = { name: 'tokens', limit: LIMIT, interval: INTERVAL, coordination, failMode: 'closed' } as const
  const cluster = await BudgetCluster.start([policy], PROCESSES, seed)
  const random = cluster.random.stream('calls')
  let [most, least, peak, offered] = [0, Number.POSITIVE_INFINITY, 0, 0]
  for (let interval = 0; interval < intervals; interval++) {
    const begin = interval * INTERVAL + 3_000
    const calls = Array.from({ length: CALLS }, () => ({ at: begin + random.next() * width, tokens: 50 + random.below(MOST_TOKENS - 49) }))
    const all = calls.map(({ at, tokens }) => {
      const process = cluster.processes[random.below(PROCESSES)] as Process
      return new Promise<number>((resolve, reject) => {
        cluster.time.at(at, () => {
          const receipt = cluster.reserve(process, 'key', { cost: { tokens }, ttl: '1h' })
          receipt.then(({ allowed }) => resolve(allowed ? tokens : 0), reject)
        })
      })
    })
    const reserved = (await cluster.settled(Promise.all(all))).reduce((sum, units) => sum + units, 0)
    most = Math.max(most, reserved)
    least = Math.min(least, reserved)
    peak = Math.max(peak, peakOf(calls))
    offered = Math.max(
      offered,
      calls.reduce((sum, { tokens }) => sum + tokens, 0),
    )
    await cluster.to((interval + 1) * INTERVAL)
  }
  cluster.stop()
  // Without a sync in between, a process can't reject calls that others have already used the units of.
  const bound = Math.min(offered, mostAllowed({ window: 'fixed', limit: LIMIT, nodes: PROCESSES, largest: MOST_TOKENS, peak }))
  return [
    atMost('reserved', most, coordination === 'background' ? bound : LIMIT, 'units'),
    // The next call is larger than the rest. Leases of single processes have several rests.
    atLeast('reserved', least, coordination === 'leased' ? 0.85 * LIMIT : LIMIT - MOST_TOKENS, 'units'),
  ]
}

/** The most units of calls that begin within the time in which processes learn of them. */
function peakOf(calls: readonly { readonly at: number; readonly tokens: number }[]): number {
  const span = reactionTime(1)
  const within = (from: number) => calls.filter(({ at }) => at >= from && at <= from + span)
  return Math.max(0, ...calls.map(({ at }) => within(at).reduce((sum, { tokens }) => sum + tokens, 0)))
}
