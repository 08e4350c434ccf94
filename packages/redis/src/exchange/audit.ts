import type { Clock } from '@weir/core'
import { AUDITED_FOR, type AuditLog, boundedLog, MOST_AUDITED } from '@weir/core/sync'
import type { Link } from '../connection/link.ts'
import type { Keys } from '../keys/keys.ts'
import { AUDIT } from '../scripts/audit.ts'
import { type Script, script } from '../scripts/script.ts'

const auditScript: Script = script(AUDIT)

/** The log of manual actions, beside the registry of processes in the first shard. */
export function auditAt(link: Link, { shards }: Keys, clock: Clock, failed: (error: unknown) => Error): AuditLog {
  const key = `${shards[0]?.prefix}audit`
  const run = async (question: { readonly entry?: string; readonly list: number }): Promise<readonly string[]> => {
    if (!(await link.connected())) throw link.lastError ?? new Error('not connected')
    const argument = JSON.stringify({ ...question, most: MOST_AUDITED, life: AUDITED_FOR })
    const entries = await link.run(auditScript, [key], argument)
    return Array.isArray(entries) ? entries : []
  }
  return boundedLog({ add: async (entry) => void (await run({ entry, list: 0 })), list: (most) => run({ list: most }) }, clock, failed)
}
