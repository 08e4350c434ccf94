import { afterSilence } from './after-silence.ts'
import type { Clock } from './clock.ts'

/**
 * Milliseconds for which syncs and decisions wait for the connection that replaces a lost one. Time in which the process is frozen doesn't
 * count.
 */
const REPLACED_WITHIN = 200

/** Resolves once a promise that never rejects has settled, or after a moment. */
export function soon(clock: Clock, replaced: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = afterSilence(clock, REPLACED_WITHIN, resolve)
    void replaced.then(() => {
      cancel()
      resolve()
    })
  })
}
