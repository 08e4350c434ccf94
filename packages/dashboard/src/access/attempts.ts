import type { IncomingMessage } from 'node:http'
import { type Decision, memoryStore, slidingCounter } from '@weir/core'
import { createGuard, type Guard, nodeReader } from '@weir/core/adapter'

/** More networks of 64 bits than one of 48 has, which anybody can have for nothing; 13 MB if all of them try. */
const MOST_ADDRESSES = 100_000

/**
 * Attempts to sign in, limited for each address alone: strangers could use up a limit of all addresses together, and nobody else could
 * sign in then. Kept by each process for itself.
 */
export class Attempts {
  readonly #guard: Guard<IncomingMessage, readonly [], 'address'> = createGuard(
    {
      store: memoryStore(),
      maxKeys: MOST_ADDRESSES,
      // From that many addresses 10 attempts each are a million a minute; beyond, one counter for all would lock everybody out.
      overflow: 'allow',
      policies: [{ name: 'address', key: 'ip', limit: 10, interval: '1m', algorithm: slidingCounter(), coordination: 'local' }],
    },
    nodeReader,
  )

  /** Counts one. Returns 0 if it may be made, else in how many milliseconds one may. */
  wait(address: string | undefined): number {
    // As if it came straight from there: the framework knows better than the socket where that is. No function has to be waited for.
    // As one that has ended it causes no warning, whose next step would be for services, not for dashboards.
    const socket = { remoteAddress: address, destroyed: true }
    const decision = this.#guard.check({ socket, headers: {} } as IncomingMessage) as Decision | undefined
    return decision === undefined || decision.allowed ? 0 : Math.max(1, decision.retryAfterMs)
  }

  close(): void {
    void this.#guard.throttler.close()
  }
}
