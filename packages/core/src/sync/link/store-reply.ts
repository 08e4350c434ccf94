import { WeirError } from '../../report/errors.ts'
import {
  ABSENT,
  attempt,
  eachOf,
  flag,
  ifUsable,
  isNumber,
  isObject,
  items,
  MOST,
  mark,
  number,
  object,
  optional,
  type Reader,
  raw,
  text,
  whole,
} from '../../report/readers.ts'
import type {
  Announcement,
  BlockState,
  Cell,
  HeartbeatReply,
  RulesReport,
  StatusReport,
  StorePolicy,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
  TotalAnnouncement,
} from '../../store/contract.ts'
import { LATEST, shapeOf } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { readLease, readNotice } from './lease-reply.ts'
import { LONGEST_RULES } from './told-rule.ts'

/*
 * Checks every reply of a store, here and nowhere else, before other code of core uses it. Each property is read once and copied, because a
 * getter may throw or return another value next time.
 *
 *     reply         { time, results, blocks, heartbeat? }    unusable as a whole if one of the first three is
 *       time        a time of the epoch, see LATEST
 *       results     one for each entry of the request: { cells, blocked, manual?, epoch? }, or undefined
 *         cells     of a fixed window: the ordinals that were sent, in that order
 *                   of a sliding one: ascending ordinals, no more than a few windows have. The meter ignores cells that are
 *                   too old or too far ahead, because it has the running ordinal
 *                   of a bucket: one, with a level
 *         taken     units, 0 to MOST, like `level`, `rejected` and `given`, which is at most `taken`
 *         blocked   milliseconds, 0 to MOST
 *         lease     if the entry has one: see `lease-reply.ts`
 *       blocks      one for each block of the request: milliseconds, or undefined
 *     heartbeat     { nodes, generation, cursor, blocks, hot, leases?, ahead?, watched?, statuses?, rules? }  unusable as a whole if one of
 *                   nodes (1 to MOST_NODES), generation, cursor and ahead is, or a list is none. Items of lists are checked one by one
 *     announcement  { type: 'total', policyId, key, cells, epoch? }, { type: 'block', policyId, key, remaining, manual?, epoch? } or
 *                   { type: 'ask', policyId, key }, or a lease's
 *       epoch       a whole number of milliseconds, a time of the epoch. `manual` is true or left out
 *
 * An unusable part counts as missing: a reply as a failed sync, an entry or a block as one whose part of the store is down, an item of a
 * list or an announcement as lost.
 */

const MOST_NODES = 1_000_000
/** A generation, a cursor (a Redis Cluster's has a number for each bucket), an id. */
const LONGEST_TEXT = 65_536
/** Keys are bounded when requests arrive, so no key of this process is longer. */
export const LONGEST_KEY = 1_024
/** Status reports that are looked at. */
const MOST_STATUSES = 10_000
const MOST_RULES = 64
/** Blocks and totals of one heartbeat that are read at most, because a store may return a list of any length. */
const MOST_ITEMS = 1_000_000

/** Reports an invalid part of a reply. `policyId` and `key` if they are known. */
export type Nonsense = (what: string, policyId?: string, key?: string) => void

const INVALID = 'Invalid reply from the store'
const FIX = 'If the store is your own, check its sync() with the contract in @weir/testing.'

/** @throws WeirError `WEIR_STORE_REPLY` if no part of the reply is usable */
export function checkReply(reply: unknown, request: SyncRequest, nonsense: Nonsense): SyncReply {
  let checked: SyncReply | undefined
  try {
    checked = readReply(reply, request, nonsense)
  } catch (cause) {
    throw new WeirError('WEIR_STORE_REPLY', `${INVALID}: it can't be read. ${FIX}`, { cause })
  }
  if (checked === undefined) throw new WeirError('WEIR_STORE_REPLY', `${INVALID}: "time", "results" or "blocks" is missing. ${FIX}`)
  return checked
}

function readReply(reply: unknown, request: SyncRequest, nonsense: Nonsense): SyncReply | undefined {
  if (!isObject(reply)) return undefined
  const { time, results: givenResults, blocks: givenBlocks } = reply
  const { entries, blocks: changes } = request
  if (!isNumber(time, 0, LATEST) || !isListOf(entries.length, givenResults) || !isListOf(changes.length, givenBlocks)) return undefined
  const entry = (at: number) => entries[at] as SyncEntry
  const results = eachOf(
    givenResults,
    entries.length,
    (value, at) => (value === undefined ? ABSENT : readResult(value, entry(at))),
    (at) => nonsense('a result', entry(at).policy.id, entry(at).key),
  )
  const blocks = eachOf(
    givenBlocks,
    changes.length,
    (left) => (left === undefined || left === null ? ABSENT : amount(left)),
    (at) => nonsense('the answer to a block', changes[at]?.policy.id, changes[at]?.key),
  )
  if (request.heartbeat === undefined) return { time, results, blocks }
  const heartbeat = attempt(() => readHeartbeat(reply['heartbeat'], request, time, nonsense))
  if (heartbeat === undefined) nonsense('the reply to a heartbeat')
  return heartbeat === undefined ? { time, results, blocks } : { time, results, blocks, heartbeat }
}

/** Runs for each key of a sync. */
function readResult(value: unknown, { policy, cells: sent, lease: ask }: SyncEntry): SyncResult | undefined {
  if (!isObject(value)) return undefined
  const { cells: given, blocked, manual, epoch: reset } = value
  const lease = ask && readLease(value['lease'])
  const cells = readCells(given, policy, shapeOf(policy) === 'fixed' ? sent : undefined)
  const epoch = reset === undefined ? undefined : readEpoch(reset)
  if (cells === undefined || !isNumber(blocked, 0, MOST) || epoch !== reset || (ask && lease === undefined)) return undefined
  const result: { -readonly [N in keyof SyncResult]: SyncResult[N] } = { cells, blocked }
  if (manual === true) result.manual = manual
  if (epoch !== undefined) result.epoch = epoch
  if (lease !== undefined) result.lease = lease
  return result
}

/** @param sent - the cells that the reply must have, in this order */
function readCells(value: unknown, policy: StorePolicy, sent?: readonly Cell[]): Cell[] | undefined {
  if (!Array.isArray(value)) return undefined
  const { length } = value
  const isBucket = shapeOf(policy) === 'bucket'
  if (sent ? length !== sent.length : isBucket ? length !== 1 : length > 4 * policy.cells) return undefined
  const cells: Cell[] = []
  let last = Number.NEGATIVE_INFINITY
  for (let i = 0; i < length; i++) {
    const cell = readCell(value[i])
    if (cell === undefined || (isBucket && cell.level === undefined)) return undefined
    if (sent ? cell.ordinal !== sent[i]?.ordinal : cell.ordinal <= last) return undefined
    last = cell.ordinal
    cells.push(cell)
  }
  return cells
}

/** Runs for each cell of a sync. */
function readCell(value: unknown): Cell | undefined {
  if (!isObject(value)) return undefined
  const { ordinal, taken, given, level, rejected } = value
  if (!Number.isSafeInteger(ordinal) || !isNumber(taken, 0, MOST) || !isNumber(given, 0, MOST)) return undefined
  const cell: { -readonly [N in keyof Cell]: Cell[N] } = { ordinal: ordinal as Ordinal, taken, given: Math.min(given, taken) }
  if (level !== undefined) {
    if (!isNumber(level, 0, MOST)) return undefined
    cell.level = level
  }
  if (rejected !== undefined) {
    if (!isNumber(rejected, 0, MOST)) return undefined
    cell.rejected = rejected
  }
  return cell
}

const amount = number(0, MOST)
const node = text(LONGEST_TEXT)
const key = text(LONGEST_KEY)
const readEpoch = whole<number>(0, LATEST)
/** Most blocks and totals do without these. */
const rare = { manual: mark, epoch: optional(readEpoch) }

const readBlock: Reader<BlockState> = object({ policyId: text(LONGEST_TEXT), key, remaining: amount, ...rare })
const readTotal = object({ key, cells: raw, ...rare })
const readStatus: Reader<StatusReport> = object({ node, status: text(LONGEST_TEXT), age: number(0, LATEST) })
const readRules: Reader<RulesReport> = object({ node, rules: text(LONGEST_RULES) })

/** The readers of the announcements that need no policy. */
const READERS = new Map<unknown, Reader<object>>([
  ['lease', readNotice],
  ['ask', object({ key })],
  ['block', readBlock],
])

function totalOf(value: unknown, policy: StorePolicy): TotalAnnouncement | undefined {
  const total = readTotal(value)
  const cells = total && (isListOf(0, total.cells) ? [] : readCells(total.cells, policy))
  return cells && { ...total, type: 'total', policyId: policy.id, cells }
}

function readHeartbeat(value: unknown, { heartbeat }: SyncRequest, time: number, nonsense: Nonsense): HeartbeatReply | undefined {
  const policies = new Map<unknown, StorePolicy>(heartbeat?.policies.map((policy) => [policy.id, policy]))
  const listOf = <T>(most: number, read: Reader<T>, what: string) => items(most, read, () => nonsense(what))
  const readHot = (item: unknown) => {
    const policy = isObject(item) ? policies.get(item['policyId']) : undefined
    return policy && totalOf(item, policy)
  }
  return object({
    nodes: whole(1, MOST_NODES),
    generation: text(LONGEST_TEXT),
    cursor: text(LONGEST_TEXT),
    blocks: listOf(MOST_ITEMS, readBlock, 'a block'),
    hot: listOf(MOST_ITEMS, readHot, 'a hot key'),
    leases: ifUsable(listOf(MOST_ITEMS, readNotice, 'news of a lease')),
    ahead: optional<number>((ahead) => (typeof ahead === 'number' && isNumber(time + ahead, 0, LATEST) ? ahead : undefined)),
    watched: flag,
    statuses: ifUsable(listOf(MOST_STATUSES, readStatus, 'the status of a process')),
    rules: ifUsable(listOf(MOST_RULES, readRules, 'the rules of a process')),
  })(value)
}

/**
 * Reads an announcement. Returns undefined if it is invalid or concerns no policy of this process.
 *
 * @param policyOf - this process's policy with an id
 */
export function checkAnnouncement(
  value: unknown,
  policyOf: (id: string) => StorePolicy | undefined,
  nonsense: Nonsense,
): Announcement | undefined {
  let id: string | undefined
  const announcement = attempt((): Announcement | typeof ABSENT | undefined => {
    if (!isObject(value)) return undefined
    const { type, policyId } = value
    if (typeof policyId !== 'string') return undefined
    id = policyId
    const policy = policyOf(policyId)
    if (policy === undefined) return ABSENT
    const read = type === 'total' ? totalOf(value, policy) : READERS.get(type)?.(value)
    return read && ({ ...read, type, policyId } as Announcement)
  })
  if (announcement === undefined) nonsense('an announcement', id)
  return announcement === ABSENT ? undefined : announcement
}

function isListOf(length: number, value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length === length
}
