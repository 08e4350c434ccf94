import { WeirError } from '../report/errors.ts'
import { inWorkers } from '../time/request-clock.ts'

/**
 * Checks that this runtime keeps connections open between requests.
 *
 * @param store - the function that makes the store
 * @throws WeirError `WEIR_INVALID_OPTION` in Cloudflare Workers
 */
export function checkSockets(store: string): void {
  if (!inWorkers()) return
  const why = `${store}() can't be used in Cloudflare Workers, which close each connection at the end of the request that opened it`
  throw new WeirError('WEIR_INVALID_OPTION', `${why}. Use a Durable Object: import { durableObjectStore } from '@weir/workers'`)
}
