import { flag, isNumber, isObject, MOST, number, object, text, whole } from '../../report/readers.ts'
import { LATEST } from '../../store/contract.ts'
import type { LeaseNotice, LeaseReply } from '../../store/leases/ask.ts'
import type { Ordinal } from '../../time/intervals.ts'

/*
 *     lease     { granted, free, used, tail, quiet, epoch, now }: units 0 to MOST; `quiet` milliseconds, `now` a time; `epoch` a whole one
 *     notice    { policyId, key, ordinal, free, tail, lost }
 */

const LONGEST = 65_536

/** Reads a store's answer about a lease. Returns undefined if it is unusable. Runs for each leased key of a sync. */
export function readLease(value: unknown): LeaseReply | undefined {
  if (!isObject(value)) return undefined
  const { granted, free, used, tail, quiet, epoch, now } = value
  if (!isNumber(granted, 0, MOST) || !isNumber(free, 0, MOST) || !isNumber(used, 0, MOST) || !isNumber(quiet, 0, MOST)) return undefined
  if (!isNumber(now, 0, LATEST) || !isNumber(epoch, 0, LATEST) || !Number.isInteger(epoch)) return undefined
  return { granted, free, used, tail: tail === true, quiet, epoch, now }
}

const readFields = object({
  policyId: text(LONGEST),
  key: text(LONGEST),
  ordinal: whole<Ordinal>(-MOST, MOST),
  free: number(0, MOST),
  tail: flag,
  lost: flag,
})

/** Reads an announcement about a lease. Returns undefined if it is unusable. */
export function readNotice(value: unknown): LeaseNotice | undefined {
  const notice = readFields(value)
  return notice && { type: 'lease', ...notice }
}
