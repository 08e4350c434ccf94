import type { SyncRequest } from './exchange.ts'

/**
 * The most milliseconds for which a store remembers a silent process. Usually it forgets the process with the last of its counts. If the
 * process has others, forgetting it only costs a repetition.
 */
const LONGEST = 600_000
/** Milliseconds for which a store remembers a process longer than its counts, because calls take different times. */
const LINGER = 1_000

/**
 * Milliseconds for which the contents of a sync matter: counts as long as a store keeps them, blocks until they end, a heartbeat as long as
 * its process counts as live.
 */
export function lifeOf({ entries, blocks, heartbeat }: Omit<SyncRequest, 'time'>): number {
  let life = heartbeat?.ttl ?? 0
  for (const { policy } of entries) life = Math.max(life, policy.width * policy.cells + policy.ttl)
  for (const { remaining, growth } of blocks) life = Math.max(life, remaining, growth?.max ?? 0)
  return life
}

/**
 * How long a store must remember a process, so that the process notices if the store has lost data. A process that was silent until
 * everything that it sent has expired has lost nothing, although the store has forgotten it.
 */
export class SentLife {
  /** Until when anything that was sent matters, on the monotonic clock. */
  #until = Number.NEGATIVE_INFINITY
  /** The same for what the store has acknowledged. During an outage it may forget the process, whatever the process goes on sending. */
  #acknowledged = Number.NEGATIVE_INFINITY

  /**
   * Records a call.
   *
   * @param life as `lifeOf` returns it
   * @returns milliseconds for which the store must remember the process
   */
  sent(now: number, life: number): number {
    this.#until = Math.max(this.#until, now + life)
    return Math.min(LONGEST, this.#until - now + LINGER)
  }

  /**
   * Records the reply to a call.
   *
   * @param sent when the call was sent
   * @param life as for `sent`
   * @returns whether the store must have remembered the process at that time
   */
  answered(sent: number, life: number): boolean {
    const matters = sent < this.#acknowledged
    this.#acknowledged = Math.max(this.#acknowledged, sent + life)
    return matters
  }
}
