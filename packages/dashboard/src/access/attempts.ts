import type { IncomingMessage } from 'node:http'
import { createThrottler, memoryStore, type Throttler } from '@weir/core'

/** Attempts to sign in: few from each address, and not many more from all together. Kept by each process for itself. */
export class Attempts {
  readonly #throttler: Throttler<'address' | 'all', IncomingMessage> = createThrottler({
    store: memoryStore(),
    maxKeys: 10_000,
    policies: [
      { name: 'address', key: 'ip', limit: 10, interval: '1m', window: 'sliding' },
      { name: 'all', key: 'all', limit: 60, interval: '1m', window: 'sliding' },
    ],
  })

  /** Counts one. Returns 0 if it may be made, else in how many milliseconds one may. */
  wait(address: string | undefined): number {
    // As if it came straight from there: the framework knows better than the socket where that is.
    const { allowed, retryAfter } = this.#throttler.check({ socket: { remoteAddress: address } } as IncomingMessage)
    return allowed ? 0 : Math.max(1, retryAfter)
  }

  close(): void {
    void this.#throttler.close()
  }
}
