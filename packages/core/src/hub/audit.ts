import { type AuditLog, MOST_AUDITED } from '../store/contract.ts'
import type { Hub } from './hub.ts'

/** The log of manual actions in a hub. */
export function auditOf({ audited }: Hub): AuditLog {
  return {
    async add(entry) {
      audited.unshift(entry)
      audited.length = Math.min(audited.length, MOST_AUDITED)
    },
    list: async (most) => audited.slice(0, most),
  }
}
