import type { IncomingMessage } from 'node:http'
import { type Decision, memoryStore, slidingCounter } from '@weir/core'
import { createGuard, type Guard, nodeReader } from '@weir/core/adapter'

/** More than the 65,536 networks of 64 bits in one network of 48 bits, which anyone can get for free. 13 MB if all of them try. */
const MOST_ADDRESSES = 100_000

/**
 * Limits attempts to sign in, separately for each address. With one limit for all addresses, a stranger could use it up and lock everyone
 * out. Each process counts alone.
 */
export class Attempts {
  readonly #guard: Guard<IncomingMessage, readonly [], 'address'> = createGuard(
    {
      store: memoryStore(),
      maxKeys: MOST_ADDRESSES,
      // This many addresses with 10 attempts each are a million attempts a minute. If further addresses shared a counter, it would lock
      // everyone out.
      overflow: 'allow',
      policies: [{ name: 'address', key: 'ip', limit: 10, interval: '1m', algorithm: slidingCounter(), coordination: 'local' }],
    },
    nodeReader,
  )

  /** Counts an attempt. Returns 0 if it is allowed, otherwise the milliseconds until the next one is. */
  wait(address: string | undefined): number {
    // A socket with the framework's address, because the framework knows its proxies. Nothing is asynchronous here, so `check` returns no
    // promise. A destroyed socket avoids the guard's warning about unknown addresses, because its advice is for services.
    const socket = { remoteAddress: address, destroyed: true }
    const decision = this.#guard.check({ socket, headers: {} } as IncomingMessage) as Decision | undefined
    return decision === undefined || decision.allowed ? 0 : Math.max(1, decision.retryAfterMs)
  }

  close(): void {
    void this.#guard.throttler.close()
  }
}
