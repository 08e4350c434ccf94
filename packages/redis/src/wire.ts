import { WeirError } from '@weir/core'
import type { Announcement, Cell, Ordinal, StatusReport, SyncResult } from '@weir/core/sync'
import { unescapeText } from './keys.ts'

/** The forms in which the scripts hand things back. A server that answers something else is told apart, not trusted. */

export function replyError(what: string): WeirError {
  return new WeirError('WEIR_STORE_REPLY', `Redis answered something that Weir does not understand: ${what}.`)
}

/** A number as the scripts write it (`%.17g`). */
export function parseNumber(text: unknown): number {
  const number = typeof text === 'string' && text !== '' ? Number(text) : text
  if (typeof number !== 'number' || !Number.isFinite(number)) throw replyError('not a number')
  return number
}

export function parseArray(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw replyError('not an array')
  return value
}

/** Node, age and status, one after the other. */
export function parseStatuses(value: unknown): StatusReport[] {
  const list = parseArray(value)
  const reports: StatusReport[] = []
  for (let i = 0; i + 2 < list.length; i += 3) {
    const [node, age, status] = [list[i], list[i + 1], list[i + 2]]
    if (typeof node !== 'string' || typeof status !== 'string') throw replyError('a status')
    reports.push({ node, status, age: parseNumber(age) })
  }
  return reports
}

/** Milliseconds since the epoch, from `TIME`. */
export function parseTime(seconds: unknown, microseconds: unknown): number {
  return parseNumber(seconds) * 1000 + parseNumber(microseconds) / 1000
}

/** `ordinal,taken,given,…`, or `ordinal;taken,taken,…` for cells that follow each other, when nothing was refunded. */
export function parseCells(text: string): Cell[] {
  if (text === '') return []
  const [first, following, ...rest] = text.split(';')
  if (rest.length > 0) throw replyError('a cell')
  if (following !== undefined) {
    const ordinal = parseNumber(first)
    return following.split(',').map((taken, place) => ({ ordinal: (ordinal + place) as Ordinal, taken: parseNumber(taken), given: 0 }))
  }
  const numbers = text.split(',')
  if (numbers.length % 3 !== 0) throw replyError('a cell')
  const cells: Cell[] = []
  for (let i = 0; i < numbers.length; i += 3) {
    cells.push({ ordinal: parseNumber(numbers[i]) as Ordinal, taken: parseNumber(numbers[i + 1]), given: parseNumber(numbers[i + 2]) })
  }
  return cells
}

/** `granted|blocked|cells`, or just the units taken in the one cell that was sent. */
export function parseResult(value: unknown, sent: readonly Cell[]): SyncResult {
  const [only] = sent
  if (typeof value === 'number' && only !== undefined) {
    return { cells: [{ ordinal: only.ordinal, taken: value, given: 0 }], blocked: 0, granted: true }
  }
  const [granted, blocked, cells, ...rest] = typeof value === 'string' ? value.split('|') : []
  if ((granted !== '0' && granted !== '1') || cells === undefined || rest.length > 0) throw replyError('a result')
  return { cells: parseCells(cells), blocked: Math.max(0, parseNumber(blocked)), granted: granted === '1' }
}

/** A block's or hot key's name in the sorted sets: `policy\nlabel` and, of a hot fixed window, `\nordinal`. */
export function parseMember(value: unknown): { policyId: string; key: string; ordinal: Ordinal | undefined } {
  const [policy, label, ordinal, ...rest] = typeof value === 'string' ? value.split('\n') : []
  if (policy === undefined || label === undefined || rest.length > 0) throw replyError('a member')
  return {
    policyId: unescapeText(policy),
    key: unescapeText(label),
    ordinal: ordinal === undefined || ordinal === '' ? undefined : (parseNumber(ordinal) as Ordinal),
  }
}

/**
 * What one script call announces of one policy: `t` (totals) or `b` (blocks), the node that caused it and the policy,
 * then label and content of each key; all on lines of their own.
 */
export function parseAnnouncements(message: string): Announcement[] {
  const [type, node, policy, ...news] = message.split('\n')
  if ((type !== 't' && type !== 'b') || node === undefined || policy === undefined || news.length % 2 !== 0) throw replyError('a message')
  const policyId = unescapeText(policy)
  const announcements: Announcement[] = []
  for (let i = 0; i < news.length; i += 2) {
    const key = unescapeText(news[i] as string)
    const content = news[i + 1] as string
    if (type === 't') announcements.push({ type: 'total', policyId, key, cells: parseCells(content) })
    else announcements.push({ type: 'block', policyId, key, remaining: Math.max(0, parseNumber(content)) })
  }
  return announcements
}

/** Whether a node itself caused an announcement. Its reply tells it the same, so it need not be read. */
export function isOwnAnnouncement(message: string, node: string): boolean {
  return message.startsWith(node, 2) && message[node.length + 2] === '\n'
}
