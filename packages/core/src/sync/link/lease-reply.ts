import { LATEST } from '../../store/contract.ts'
import type { LeaseNotice, LeaseReply } from '../../store/leases/ask.ts'
import type { Ordinal } from '../../time/intervals.ts'

/*
 *     lease     { granted, free, used, tail, quiet, epoch, now }: units 0 to MOST; `quiet` milliseconds, `now` a time; `epoch` a whole one
 *     notice    { policyId, key, ordinal, free, tail, lost }
 */

const MOST: number = Number.MAX_SAFE_INTEGER
const LONGEST = 65_536

/** Reads a store's answer about a lease; undefined if it is unusable. */
export function readLease(value: unknown): LeaseReply | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { granted, free, used, tail, quiet, epoch, now } = value as { readonly [name in keyof LeaseReply]?: unknown }
  if (!isAmount(granted) || !isAmount(free) || !isAmount(used) || !isAmount(quiet)) return undefined
  if (!isAmount(now) || now > LATEST || !isAmount(epoch) || epoch > LATEST || !Number.isInteger(epoch)) return undefined
  return { granted, free, used, tail: tail === true, quiet, epoch, now }
}

/** News of a lease; undefined where it can't be used. */
export function readNotice(value: unknown): LeaseNotice | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { policyId, key, ordinal, free, tail, lost } = value as { readonly [name in keyof LeaseNotice]?: unknown }
  if (typeof policyId !== 'string' || typeof key !== 'string' || policyId.length > LONGEST || key.length > LONGEST) return undefined
  if (!Number.isSafeInteger(ordinal) || !isAmount(free)) return undefined
  return { type: 'lease', policyId, key, ordinal: ordinal as Ordinal, free, tail: tail === true, lost: lost === true }
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MOST
}
