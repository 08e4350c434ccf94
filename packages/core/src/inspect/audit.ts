import { adapterOf } from '../throttler/adapter-side.ts'
import { type AuditedAction, record } from '../throttler/audit.ts'
import { type AuditEntry, recorded } from '../throttler/audit-log.ts'
import type { Throttler } from '../throttler/throttler.ts'

export type { AuditedAction } from '../throttler/audit.ts'
export { type AuditEntry, parseAuditEntry } from '../throttler/audit-log.ts'

/**
 * Adds a manual action to the audit log, for programs that act for a user, such as a dashboard. Your own code passes a `reason` to `block`,
 * `unblock` or `reset` instead.
 *
 * The store keeps the log. Without a store, or if it has no log, the throttler keeps the newest 100 entries. Never rejects: if the store
 * doesn't answer within 5 s, the throttler emits one `warning`.
 *
 * @example
 * throttler.unblock(key)
 * await recordAction(throttler, { action: 'unblock', key, by: session.user, reason: 'a false alarm' })
 */
export function recordAction(throttler: Throttler<string, never>, action: AuditedAction): Promise<void> {
  return record(action, adapterOf(throttler).inspected)
}

/** Options of `auditLog`. */
export interface AuditLogOptions {
  /**
   * Limits how many entries are returned, 1 to 1,000.
   *
   * @default 100
   */
  readonly most?: number
}

/**
 * Returns the newest entries of the audit log of all processes with this store, the newest one first.
 *
 * @throws (rejects) if the store doesn't answer within 5 s
 */
export function auditLog(throttler: Throttler<string, never>, { most = 100 }: AuditLogOptions = {}): Promise<readonly AuditEntry[]> {
  return recorded(most, adapterOf(throttler).inspected)
}
