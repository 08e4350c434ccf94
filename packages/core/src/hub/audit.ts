import { AUDITED_FOR, type AuditLog, MOST_AUDITED } from '../store/contract.ts'
import type { Hub } from './hub.ts'

/** The log of manual actions in a hub. */
export function auditOf({ audited, clock }: Hub): AuditLog {
  return {
    async add(entry) {
      audited.unshift({ entry, until: clock.monotonic() + AUDITED_FOR })
      audited.length = Math.min(audited.length, MOST_AUDITED)
    },
    async list(most) {
      const now = clock.monotonic()
      return audited
        .filter(({ until }) => until > now)
        .map(({ entry }) => entry)
        .slice(0, most)
    },
  }
}
