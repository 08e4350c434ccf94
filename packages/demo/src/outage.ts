import type { Cluster } from './cluster.ts'
import { sleep } from './traffic/pace.ts'

/** Parts of the run between which Redis is down. */
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
  // Restarts also after an early end, so that the gateways can send their last counts.
  outage.restarted = Date.now()
  cluster.restartRedis()
}

/** Milliseconds from an order until each gateway noticed it. Undefined for a gateway that did not. */
export function noticed(cluster: Cluster, state: 'storeDown' | 'storeUp', since: number | undefined): readonly (number | undefined)[] {
  return cluster.gateways.map(({ states }) => {
    if (since === undefined) return undefined
    const change = states.find((one) => one.state === state && one.time >= since)
    return change === undefined ? undefined : change.time - since
  })
}
