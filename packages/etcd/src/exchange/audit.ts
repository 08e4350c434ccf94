import { AUDITED_FOR, type AuditLog, LONGEST_AUDITED, MOST_AUDITED } from '@weir/core/sync'
import type { Expiry } from '../gateway/expiry.ts'
import type { Link } from '../gateway/link.ts'
import { last, newest, put, removeFrom } from '../gateway/operations.ts'
import { partOf } from '../gateway/replies.ts'
import type { Layout } from '../keys/layout.ts'

export interface AuditHost {
  readonly id: string
  readonly keys: Layout
  readonly link: Link
  readonly expiry: Expiry
}

/** Old entries are removed with the first entry of a process, and with each of this many, because that reads all names. */
const REMOVED_AFTER = 32

let added = 0

/** The log of manual actions, each in a key of its own. The names are in the order of time. */
export function auditAt({ id, keys, link, expiry }: AuditHost): AuditLog {
  return {
    async add(entry) {
      // The name is made once, because a write that is repeated after a lost reply must not add a second entry.
      const name = keys.action(link.time.now(), `${id}.${++added}`)
      const old = added % REMOVED_AFTER === 1 ? [last(keys.actions, MOST_AUDITED + 1)] : []
      const reply = await expiry.renewing(async () => link.transact([put(name, entry, await expiry.leaseFor(AUDITED_FOR)), ...old]))
      const oldest = partOf(reply, 1).held[MOST_AUDITED]
      if (oldest !== undefined) await link.transact([removeFrom(keys.actions, `${oldest.name}\0`)])
    },
    async list(most) {
      const { held } = partOf(await link.transact([newest(keys.actions, most)]), 0)
      return held.map(({ value }) => value).filter(({ length }) => length <= LONGEST_AUDITED)
    },
  }
}
