import { changed, type Decision } from '../decide/decision.ts'
import { AcquireError } from '../queue/acquire-error.ts'
import { type Answering, whenEnded } from '../report/when-ended.ts'
import type { Throttler } from '../throttler/throttler.ts'

/**
 * Delays a request as its decision requires.
 *
 * @returns the decision after the delay; a rejection if the queue is full; null if the client has disconnected, and then the request's
 * units are refunded
 */
export async function holdRequest<Name extends string, Req>(
  throttler: Throttler<Name, Req>,
  decision: Decision<Name>,
  response: Answering | undefined,
  client: string | undefined,
): Promise<Decision<Name> | null> {
  const gone = new AbortController()
  const leave = response === undefined ? undefined : whenEnded(response, () => gone.abort())
  try {
    return await throttler.waitFor(decision, gone.signal, client)
  } catch (error) {
    if (!(error instanceof AcquireError)) throw error
    if (error.reason === 'aborted') return null
    if (error.reason !== 'queue-full') throw error
    const retryAfterMs = Math.max(1, Math.ceil(decision.delayMs))
    return changed(decision, { allowed: false, reason: 'limit', cost: 0, delayMs: 0, retryAfterMs })
  } finally {
    leave?.()
  }
}
