import type { Cluster } from '../cluster.ts'
import { WARM_UP } from '../processes/messages.ts'
import { pace, sleep } from './pace.ts'
import { Sender } from './sender.ts'

const REQUESTS = 600
/** Milliseconds between two requests. */
const GAP = 2.5

/**
 * Sends a fixed number of requests from a separate client, which are not counted. They open the connections and compile the code.
 * Otherwise the first interval would show the start of a process, not a limiter.
 */
export async function warmUp(cluster: Cluster, signal: AbortSignal): Promise<void> {
  const sender = new Sender(cluster.ports, () => {})
  try {
    const requests = Array.from({ length: REQUESTS }, (_, i) => ({ at: i * GAP, client: WARM_UP, method: 'GET', path: '/' }))
    await pace(requests, Date.now(), (request, due) => sender.send(request, due), signal)
    await sender.drain()
  } finally {
    sender.close()
  }
  // Counts from before the run are no part of it, so this waits until the gateways have reported them.
  const before = cluster.gateways.map(({ snapshot }) => snapshot)
  while (!signal.aborted && cluster.lost.length === 0 && cluster.gateways.some(({ snapshot }, i) => snapshot === before[i]))
    await sleep(20, signal)
  for (const gateway of cluster.gateways) gateway.baseline = gateway.snapshot
  cluster.commands?.reset()
}
