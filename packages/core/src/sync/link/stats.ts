import { Recent } from '../../report/recent.ts'
import { reasonOf } from '../../report/show.ts'
import type { SyncFailureCause } from '../../report/stats.ts'

/** Sums over all syncs since the start. */
export class SyncStats {
  exchanges = 0
  entries = 0
  lastDuration = 0
  lastError: string | undefined
  /** On the monotonic clock. */
  succeededAt: number | undefined
  readonly failures: Record<SyncFailureCause, number> = { timeout: 0, unavailable: 0, reply: 0, rejected: 0 }
  readonly failuresLastHour: Recent = new Recent(60, 60_000)

  succeed(entries: number, duration: number, now: number): void {
    this.exchanges++
    this.entries += entries
    this.lastDuration = duration
    this.succeededAt = now
  }

  fail(error: unknown, now: number): SyncFailureCause {
    const cause = causeOf(error)
    this.failures[cause]++
    this.failuresLastHour.add(1, now, now)
    this.lastError = reasonOf(error)
    return cause
  }

  get failed(): number {
    const { timeout, unavailable, reply, rejected } = this.failures
    return timeout + unavailable + reply + rejected
  }
}

/** The kind of failure behind a store's error. */
export function causeOf(error: unknown): SyncFailureCause {
  try {
    return readCause(error)
  } catch {
    return 'rejected'
  }
}

function readCause(error: unknown): SyncFailureCause {
  if (!(error instanceof Error)) return 'rejected'
  const code = 'code' in error ? error.code : undefined
  if (code === 'WEIR_STORE_TIMEOUT') return 'timeout'
  if (code === 'WEIR_STORE_REPLY') return 'reply'
  // The server is reachable but rejects requests. Redis clients use this name for such errors.
  if (error.cause instanceof Error && error.cause.name === 'ReplyError') return 'rejected'
  return code === 'WEIR_STORE_UNAVAILABLE' || (typeof code === 'string' && /^E[A-Z]+$/.test(code)) ? 'unavailable' : 'rejected'
}
