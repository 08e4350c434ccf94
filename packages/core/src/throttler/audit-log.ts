import { object, optional, text, whole } from '../report/readers.ts'
import { answered, LONGEST_AUDITED, MOST_AUDITED } from '../store/audit.ts'
import { LONGEST_PART, openLog, ownEntries } from './audit.ts'
import type { Coordinated } from './coordinator.ts'

/** An entry of the audit log. */
export interface AuditEntry {
  /** Milliseconds since the Unix epoch, by the clock of the process that acted. */
  readonly time: number
  readonly by: string
  readonly action: string
  /** Name of the policy. Undefined for all policies. */
  readonly policy?: string
  readonly key: string
  /** Empty if the user gave none. */
  readonly reason: string
}

/** Returns the newest entries, the newest one first. @throws (rejects) if the store does not answer */
export async function recorded(most: number, host: Coordinated): Promise<readonly AuditEntry[]> {
  const { clock, coordinator } = host
  const log = await answered(clock, openLog(coordinator))
  const texts: unknown = log === undefined ? ownEntries(host) : await answered(clock, log.list(Math.min(most, MOST_AUDITED)))
  return Array.isArray(texts) ? texts.slice(0, most).flatMap((one) => parseAuditEntry(one) ?? []) : []
}

/**
 * Reads an entry of a store's log, for programs without a throttler. Returns undefined for a text of another form, because a store's content
 * is not trusted.
 */
export function parseAuditEntry(entry: unknown): AuditEntry | undefined {
  if (typeof entry !== 'string' || entry.length > LONGEST_AUDITED) return undefined
  try {
    return read(JSON.parse(entry))
  } catch {
    return undefined
  }
}

const part = text(LONGEST_PART)
/** The latest time of a `Date`. */
const LATEST = 8.64e15
const read = object({ time: whole(0, LATEST), by: part, action: part, policy: optional(part), key: part, reason: part })
