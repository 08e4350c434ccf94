import type { Announcement, BlockState, Cell, LeaseNotice, Ordinal, TotalAnnouncement } from '@weir/core/sync'
import { unescapeText } from '../keys/keys.ts'
import { asArray, asBucket, asCells, asRemaining, asText, asUnits, asWhole, replyError, understood } from '../reply/check.ts'
import type { PolicyNames } from './policies.ts'

/** The most characters of a message. PostgreSQL accepts less than 8,000 bytes. */
const LONGEST_MESSAGE = 8_000

/**
 * Reads a message: [process, …]. Each further element is one of
 *
 *     ['t' | 'u', policy, key, cells | bucket, reset or 0]
 *     ['b', policy, key, remaining, manual, reset or 0]
 *     ['l', policy, key, ordinal, free, tail, lost]
 *     ['a', policy, key]
 *
 * @returns nothing for a process's own messages, because its reply contains the same
 * @throws if the message is not from Weir
 */
export function announcementsOf(message: string, node: string, names: PolicyNames): Announcement[] {
  if (message.length > LONGEST_MESSAGE) throw replyError('a long message')
  const [sender, ...all] = asArray(JSON.parse(message))
  if (sender === node) return []
  return all.flatMap((one) => understood(() => announcementOf(asArray(one), names)) ?? [])
}

function announcementOf([type, policy, key, ...rest]: readonly unknown[], names: PolicyNames): Announcement {
  if (type === 'a') return { type: 'ask', policyId: names.idOf(asText(policy)), key: unescapeText(asText(key)) }
  if (type === 'b') return { type: 'block', ...blockOf([policy, key, ...rest], names) }
  if (type === 't' || type === 'u') return totalOf([policy, key, ...rest, type === 'u'], names)
  if (type === 'l') return noticeOf([policy, key, ...rest], names)
  throw replyError('an announcement')
}

/** [policy, key, cells, reset, whether it is a bucket]. */
export function totalOf([policy, key, cells, epoch, isBucket]: readonly unknown[], names: PolicyNames): TotalAnnouncement {
  const counted: readonly Cell[] = isBucket === true ? [asBucket(cells)] : asCells(cells)
  return {
    type: 'total',
    policyId: names.idOf(asText(policy)),
    key: unescapeText(asText(key)),
    cells: counted,
    ...(epoch !== 0 && { epoch: asWhole(epoch) }),
  }
}

/** [policy, key, remaining, manual, reset]. */
export function blockOf([policy, key, left, manual, epoch]: readonly unknown[], names: PolicyNames): BlockState {
  return {
    policyId: names.idOf(asText(policy)),
    key: unescapeText(asText(key)),
    remaining: asRemaining(left),
    ...(manual === true && { manual: true }),
    ...(epoch !== 0 && { epoch: asWhole(epoch) }),
  }
}

/** [policy, key, ordinal, free, tail, lost]. */
export function noticeOf([policy, key, ordinal, free, tail, lost]: readonly unknown[], names: PolicyNames): LeaseNotice {
  if (typeof tail !== 'boolean' || typeof lost !== 'boolean') throw replyError('news of a lease')
  const of = { policyId: names.idOf(asText(policy)), key: unescapeText(asText(key)), ordinal: asWhole(ordinal) as Ordinal }
  return { type: 'lease', ...of, free: asUnits(free), tail, lost }
}
