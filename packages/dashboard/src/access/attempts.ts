import type { IncomingMessage } from 'node:http'
import { type Decision, memoryStore, slidingWindow } from '@weir/core'
import { createGuard, type Guard, nodeReader } from '@weir/core/http'

/** Attempts to sign in: few from each address, and not many more from all together. Kept by each process for itself. */
export class Attempts {
  readonly #guard: Guard<IncomingMessage, readonly [], 'address' | 'all'> = createGuard(
    {
      store: memoryStore(),
      maxKeys: 10_000,
      policies: [
        { name: 'address', key: 'ip', limit: 10, interval: '1m', algorithm: slidingWindow() },
        { name: 'all', key: 'all', limit: 60, interval: '1m', algorithm: slidingWindow() },
      ],
    },
    nodeReader,
  )

  /** Counts one. Returns 0 if it may be made, else in how many milliseconds one may. */
  wait(address: string | undefined): number {
    // As if it came straight from there: the framework knows better than the socket where that is. No function has to be waited for.
    const decision = this.#guard.check({ socket: { remoteAddress: address }, headers: {} } as IncomingMessage) as Decision | undefined
    return decision === undefined || decision.allowed ? 0 : Math.max(1, decision.retryAfter)
  }

  close(): void {
    void this.#guard.throttler.close()
  }
}
