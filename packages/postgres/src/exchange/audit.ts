import { AUDITED_FOR, type AuditLog, LONGEST_AUDITED, MOST_AUDITED } from '@weir/core/sync'
import type { Calls } from '../connection/calls.ts'
import type { Session } from '../connection/session.ts'

/** The log of manual actions. */
export function auditAt(session: Session, calls: Calls, schema: string): AuditLog {
  const table = `${schema}.audit`
  const now = 'extract(epoch FROM clock_timestamp())::float8 * 1000'
  const query = async (statement: string, values: unknown[]): Promise<readonly unknown[]> => {
    if (!(await session.connected())) throw session.lastError ?? new Error('not connected')
    return await calls.query(statement, values)
  }
  return {
    async add(entry) {
      const excess = `id <= (SELECT max(id) FROM ${table}) - ${MOST_AUDITED - 1}`
      await query(
        `WITH removed AS (DELETE FROM ${table} WHERE expires < ${now} OR ${excess})
INSERT INTO ${table} (entry, expires) VALUES ($1, ${now} + ${AUDITED_FOR})`,
        [entry],
      )
    },
    async list(most) {
      const rows = await query(
        `SELECT left(entry, ${LONGEST_AUDITED + 1}) AS entry FROM ${table} WHERE expires >= ${now} ORDER BY id DESC LIMIT $1`,
        [most],
      )
      return rows.map((row) => String((row as { readonly entry?: unknown }).entry))
    },
  }
}
