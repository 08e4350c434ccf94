import type { Cluster } from './cluster.ts'
import { sleep } from './traffic/pace.ts'

/** Redis is away between these two parts of the time. */
const KILL = 1 / 3
const RESTART = 2 / 3

/** The times of `--kill-redis` and their effects. Times are milliseconds since the epoch. */
export interface Outage {
  killed: number | undefined
  restarted: number | undefined
}

/** Kills Redis after a third of the time and starts it again, empty, after two thirds. */
export async function breakRedis(cluster: Cluster, outage: Outage, start: number, duration: number, signal: AbortSignal): Promise<void> {
  await sleep(start + duration * KILL - Date.now(), signal)
  if (signal.aborted) return
  outage.killed = Date.now()
  cluster.killRedis()
  await sleep(start + duration * RESTART - Date.now(), signal)
  // Also when the run is cut short, so that the gateways end as they began.
  outage.restarted = Date.now()
  cluster.restartRedis()
}

/** How long after an order each gateway noticed, in milliseconds; undefined for those that did not. */
export function noticed(cluster: Cluster, state: 'storeDown' | 'storeUp', since: number | undefined): readonly (number | undefined)[] {
  return cluster.gateways.map(({ states }) => {
    if (since === undefined) return undefined
    const change = states.find((one) => one.state === state && one.time >= since)
    return change === undefined ? undefined : change.time - since
  })
}
