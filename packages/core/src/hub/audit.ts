import { AUDITED_FOR, type AuditLog, MOST_AUDITED } from '../store/contract.ts'
import type { Hub } from './hub.ts'
import { rowOf } from './rows.ts'

/** The log of manual actions in a hub. */
export function auditOf({ audited, clock, changed }: Hub): AuditLog {
  let added = 0
  return {
    async add(entry) {
      const row = { name: rowOf('audit', clock.monotonic(), ++added), entry, until: clock.monotonic() + AUDITED_FOR }
      audited.unshift(row)
      changed?.(row.name, () => (audited.includes(row) ? { type: 'audit', ...row } : undefined))
      const dropped = audited.splice(MOST_AUDITED)
      for (const { name } of dropped) changed?.(name, () => undefined)
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
