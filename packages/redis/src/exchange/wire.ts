import { WeirError } from '@weir/core'
import type { Announcement, BlockState, Cell, LeaseNotice, Ordinal, RulesReport, StatusReport, SyncResult } from '@weir/core/sync'
import { MOST_UNITS, unescapeText } from '../keys/keys.ts'

/** Readers of the scripts' replies. A value of another form throws, so no invalid value is used. */

/** The longest time in milliseconds, 158 years, so that Redis's own times don't overflow. Longer times are shortened to it. */
export const LONGEST_TIME = 5e12

/** The most cells of a window in a reply or a message: usually some 1,000, and 7,936 if each part of the window had a burst. */
const MOST_CELLS = 8_192

/** The most characters, and the most keys, of a message. One script call has fewer, even if all characters are escaped. */
const LONGEST_MESSAGE = 2 * 1024 * 1024
const MOST_NEWS = 500

export function replyError(what: string): WeirError {
  return new WeirError('WEIR_STORE_REPLY', `Invalid reply from Redis: ${what}. Is there a proxy that changes replies?`)
}

/** Reads a number in the form that the scripts write (`%.17g`). */
export function parseNumber(text: unknown): number {
  const number = typeof text === 'string' && text !== '' ? Number(text) : text
  if (typeof number !== 'number' || !Number.isFinite(number)) throw replyError('not a number')
  return number
}

/** Reads a whole number that is not negative: an ordinal, a version. */
export function parseWhole(text: unknown): number {
  const number = parseNumber(text)
  if (!Number.isSafeInteger(number) || number < 0) throw replyError('not a whole number')
  return number
}

function parseUnits(text: unknown): number {
  const units = parseNumber(text)
  if (!(units >= 0 && units <= MOST_UNITS)) throw replyError('not a count')
  return units
}

/** Reads remaining milliseconds. Negative ones become 0. */
export function parseRemaining(text: unknown): number {
  return Math.min(LONGEST_TIME, Math.max(0, parseNumber(text)))
}

export function parseArray(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw replyError('not an array')
  return value
}

/** Reads an independent part of a reply. If the part is invalid, it counts as missing. */
export function understood<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

/** Reads the number that a shard remembered before a call. 0 for none, and for an invalid value. */
export function parseSequence(value: unknown): number {
  return (value !== '' && understood(() => parseWhole(value))) || 0
}

/** Reads a list of process, age and status in turn. */
export function parseStatuses(value: unknown): StatusReport[] {
  const list = Array.isArray(value) ? value : []
  const reports: StatusReport[] = []
  for (let i = 0; i + 2 < list.length; i += 3) {
    const [node, status] = [list[i], list[i + 2]]
    const age = understood(() => parseRemaining(list[i + 1]))
    if (typeof node === 'string' && typeof status === 'string' && age !== undefined) reports.push({ node, status, age })
  }
  return reports
}

/** Reads a list of process and rules in turn. */
export function parseRules(value: unknown): RulesReport[] {
  const list = Array.isArray(value) ? value : []
  const reports: RulesReport[] = []
  for (let i = 0; i + 1 < list.length; i += 2) {
    const [node, rules] = [list[i], list[i + 1]]
    if (typeof node === 'string' && typeof rules === 'string') reports.push({ node, rules })
  }
  return reports
}

/** Converts the reply to `TIME` to milliseconds since the epoch. */
export function parseTime(seconds: unknown, microseconds: unknown): number {
  const time = parseNumber(seconds) * 1000 + parseNumber(microseconds) / 1000
  if (!(time >= 0 && time <= LAST_TIME)) throw replyError('not a time')
  return time
}

/** The last moment of a `Date`. */
const LAST_TIME = 8.64e15

/**
 * Reads `ordinal,taken,given,…`, or `ordinal;taken,taken,…` for consecutive cells without refunds. For a bucket it is
 * `ordinal,taken,given,level`, and `,rejected` if any units were rejected.
 */
export function parseCells(text: string): Cell[] {
  if (text === '') return []
  const [first, following, ...rest] = text.split(';', 3)
  if (rest.length > 0) throw replyError('a cell')
  if (following !== undefined) {
    const ordinal = parseWhole(first)
    const units = following.split(',', MOST_CELLS + 1)
    if (units.length > MOST_CELLS) throw replyError('too many cells')
    return units.map((taken, place) => ({ ordinal: (ordinal + place) as Ordinal, taken: parseUnits(taken), given: 0 }))
  }
  const numbers = text.split(',', 3 * MOST_CELLS + 1)
  if (numbers.length === 4 || numbers.length === 5) {
    const [ordinal, taken, given, level, rejected] = numbers
    const cell = { ordinal: parseWhole(ordinal) as Ordinal, taken: parseUnits(taken), given: parseUnits(given), level: parseUnits(level) }
    return [rejected === undefined ? cell : { ...cell, rejected: parseUnits(rejected) }]
  }
  if (numbers.length % 3 !== 0) throw replyError('a cell')
  const cells: Cell[] = []
  for (let i = 0; i < numbers.length; i += 3) {
    cells.push({ ordinal: parseWhole(numbers[i]) as Ordinal, taken: parseUnits(numbers[i + 1]), given: parseUnits(numbers[i + 2]) })
  }
  return cells
}

/** Reads `blocked|cells`, optionally with `|manual|newer reset`, or only the units taken in the one cell that was sent. */
export function parseResult(value: unknown, sent: readonly Cell[]): SyncResult {
  const [only] = sent
  if (typeof value === 'number' && only !== undefined) {
    return { cells: [{ ordinal: only.ordinal, taken: parseUnits(value), given: 0 }], blocked: 0 }
  }
  const [blocked, cells, ...rest] = typeof value === 'string' ? value.split('|', 5) : []
  if (cells === undefined) throw replyError('a result')
  return { cells: parseCells(cells), blocked: parseRemaining(blocked), ...parseRare(rest) }
}

/** Reads whether a block is manual (`1` or nothing) and the time of a reset (or nothing). Most blocks have neither. */
function parseRare([manual, epoch, ...rest]: readonly string[]): { manual?: true; epoch?: number } {
  if (manual === undefined) return {}
  if ((manual !== '' && manual !== '1') || epoch === undefined || rest.length > 0) throw replyError('a block')
  return { ...(manual === '1' && { manual: true }), ...(epoch !== '' && { epoch: parseWhole(epoch) }) }
}

/** The remaining block: `remaining`, or `remaining|manual|last reset`. */
export function parseBlock(value: unknown): Omit<BlockState, 'policyId' | 'key'> {
  if (typeof value !== 'string') return { remaining: parseRemaining(value) }
  const [remaining, ...rest] = value.split('|', 4)
  return { remaining: parseRemaining(remaining), ...parseRare(rest) }
}

/** Reads the name of a block or of a key near its limit in the sorted sets: `policy\nlabel` and, for a fixed window, `\nordinal`. */
export function parseMember(value: unknown): { policyId: string; key: string; ordinal: Ordinal | undefined } {
  const [policy, label, ordinal, ...rest] = typeof value === 'string' ? value.split('\n', 4) : []
  if (policy === undefined || label === undefined || rest.length > 0) throw replyError('a member')
  return {
    policyId: unescapeText(policy),
    key: unescapeText(label),
    ordinal: ordinal === undefined || ordinal === '' ? undefined : (parseWhole(ordinal) as Ordinal),
  }
}

/**
 * Reads the announcement of a lease in the sorted set: `policy\nlabel\nordinal\n`, and `lost` if the server had lost the leases of
 * processes.
 */
export function parseNews(value: unknown): LeaseNotice {
  const [policy, label, ordinal, kind, ...rest] = typeof value === 'string' ? value.split('\n', 5) : []
  if (policy === undefined || label === undefined || (kind !== '' && kind !== 'lost') || rest.length > 0)
    throw replyError('news of a lease')
  const of = { policyId: unescapeText(policy), key: unescapeText(label), ordinal: parseWhole(ordinal) as Ordinal }
  return { type: 'lease', ...of, free: 0, tail: kind === '', lost: kind === 'lost' }
}

/** Reads `ordinal,free,tail,lost`. */
function parseNotice(content: string): Pick<LeaseNotice, 'ordinal' | 'free' | 'tail' | 'lost'> {
  const [ordinal, free, tail, lost, ...rest] = content.split(',', 5)
  if ((tail !== '0' && tail !== '1') || (lost !== '0' && lost !== '1') || rest.length > 0) throw replyError('news of a lease')
  return { ordinal: parseWhole(ordinal) as Ordinal, free: parseUnits(free), tail: tail === '1', lost: lost === '1' }
}

/**
 * The announcements of one script call about one policy: `t` (totals), `b` (blocks), `l` (leases) or `a` (requests for counts), the process
 * that caused it (none if that process must read it too) and the policy, then label and content of each key, each on its own line. A key
 * with invalid content is left out.
 */
export function parseAnnouncements(message: string): Announcement[] {
  if (message.length > LONGEST_MESSAGE) throw replyError('a long message')
  const [type, node, policy, ...news] = message.split('\n', 3 + 2 * MOST_NEWS + 1)
  if ((type !== 't' && type !== 'b' && type !== 'a' && type !== 'l') || node === undefined || policy === undefined || news.length % 2 !== 0)
    throw replyError('a message')
  const policyId = unescapeText(policy)
  const announcements: Announcement[] = []
  for (let i = 0; i < news.length; i += 2) {
    const key = unescapeText(news[i] as string)
    const content = news[i + 1] as string
    const announcement = understood((): Announcement => {
      if (type === 'a') return { type: 'ask', policyId, key }
      if (type === 'l') return { type: 'lease', policyId, key, ...parseNotice(content) }
      return type === 't'
        ? { type: 'total', policyId, key, ...parseTotal(content) }
        : { type: 'block', policyId, key, ...parseBlock(content) }
    })
    if (announcement !== undefined) announcements.push(announcement)
  }
  return announcements
}

/** Cells, or `cells|reset`. No cells if the store has lost them. */
function parseTotal(content: string): { readonly cells: readonly Cell[]; readonly epoch?: number } {
  const [cells = '', epoch, ...rest] = content.split('|', 3)
  if (rest.length > 0) throw replyError('a total')
  return { cells: parseCells(cells), ...(epoch !== undefined && { epoch: parseWhole(epoch) }) }
}

/** Returns whether this process caused an announcement. Its reply contains the same, so the message is not read. */
export function isOwnAnnouncement(message: string, node: string): boolean {
  return message.startsWith(node, 2) && message[node.length + 2] === '\n'
}
