import { WeirError } from '../../report/errors.ts'
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
import { LATEST } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { readLease, readNotice } from './lease-reply.ts'
import { LONGEST_RULES } from './told-rule.ts'

/*
 * Checks every reply of a store, here and nowhere else, before other code of core uses it. Each property is read once and copied, because a
 * getter may throw or return another value next time.
 *
 *     reply         { time, results, blocks, heartbeat? }    unusable as a whole if one of the first three is
 *       time        a time of the epoch, see LATEST
 *       results     as long as the request's entries; of each { cells, blocked, manual?, epoch? }, or undefined
 *         cells     of a fixed window: the ordinals that were sent, in that order
 *                   of a sliding one: ascending ordinals, no more than a few windows have; those that are too old or far ahead
 *                   are left out by the meter, which knows what is running
 *                   of a bucket: one, with a level
 *         taken     units, 0 to MOST; `level` and `rejected` likewise; `given` likewise, never more than was taken
 *         blocked   milliseconds, 0 to MOST
 *         lease     where the entry has one: see `lease-reply.ts`
 *       blocks      as long as the request's blocks; of each milliseconds, or undefined
 *     heartbeat     { nodes, generation, cursor, blocks, hot, leases?, ahead?, watched?, statuses?, rules? }    unusable as a whole if one of
 *                   nodes (1 to MOST_NODES), generation, cursor and ahead is, or a list is none; in lists each item stands for itself
 *     announcement  { type: 'total', policyId, key, cells, epoch? }, { type: 'block', policyId, key, remaining, manual?, epoch? } or
 *                   { type: 'ask', policyId, key }, or a lease's
 *       epoch       a whole number of milliseconds, a time of the epoch; `manual` is true where it is not left out
 *
 * An unusable part counts as missing: a reply as a failed sync, an entry or a block as one whose part of the store is down, an item of a
 * list or an announcement as one that was lost.
 */

/** Units, and milliseconds of a block, at most. */
const MOST: number = Number.MAX_SAFE_INTEGER
const MOST_NODES = 1_000_000
/** A generation, a cursor (a Redis Cluster's has a number for each bucket), an id. */
const LONGEST_TEXT = 65_536
/** Keys are bounded where requests come in, so no key of this node is longer. */
export const LONGEST_KEY = 1_024
/** Status reports that are looked at. */
const MOST_STATUSES = 10_000
const MOST_RULES = 64
/** Blocks and hot keys of one heartbeat that are looked at: a list may claim any length. */
const MOST_ITEMS = 1_000_000

/** Tells of what was no part of an answer. `policyId` and `key` where they are known. */
export type Nonsense = (what: string, policyId?: string, key?: string) => void

const INVALID = 'Invalid reply from the store'
const FIX = 'If the store is your own, check its sync() with the contract in @weir/testing.'

/** @throws WeirError `WEIR_STORE_REPLY` when nothing of the reply can be used */
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
  const { entries } = request
  if (!isTime(time) || !isListOf(entries.length, givenResults) || !isListOf(request.blocks.length, givenBlocks)) return undefined
  const results: (SyncResult | undefined)[] = []
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as SyncEntry
    const result = attempt(() => {
      const value = givenResults[i]
      return value === undefined ? MISSING : readResult(value, entry)
    })
    if (result === undefined) nonsense('a result', entry.policy.id, entry.key)
    results.push(result === MISSING ? undefined : result)
  }
  const blocks: (number | undefined)[] = []
  for (let i = 0; i < request.blocks.length; i++) {
    const left = attempt(() => givenBlocks[i] ?? MISSING)
    if (left !== MISSING && !isAmount(left)) nonsense('the answer to a block', request.blocks[i]?.policy.id, request.blocks[i]?.key)
    blocks.push(isAmount(left) ? left : undefined)
  }
  if (request.heartbeat === undefined) return { time, results, blocks }
  const heartbeat = attempt(() => readHeartbeat(reply['heartbeat'], request, time, nonsense))
  if (heartbeat === undefined) nonsense('the answer to a heartbeat')
  return heartbeat === undefined ? { time, results, blocks } : { time, results, blocks, heartbeat }
}

/** The store left a part out, as it may. */
const MISSING: unique symbol = Symbol('missing')

function readResult(value: unknown, { policy, cells: sent, lease: ask }: SyncEntry): SyncResult | undefined {
  if (!isObject(value)) return undefined
  const { blocked } = value
  const lease = ask && readLease(value['lease'])
  if (ask !== undefined && lease === undefined) return undefined
  if (!isAmount(blocked)) return undefined
  const cells = policy.cells === 1 ? readSentCells(value['cells'], sent) : readTotals(value['cells'], policy)
  return cells && readRest({ cells, blocked, ...(lease && { lease }) }, value)
}

/** Adds what most results, blocks and totals do without; undefined where it can't be used. */
function readRest<T extends object>(part: T, value: Loose): (T & { readonly manual?: true; readonly epoch?: number }) | undefined {
  const { manual, epoch } = value
  if (epoch !== undefined && !(Number.isSafeInteger(epoch) && isTime(epoch))) return undefined
  if (manual !== true && epoch === undefined) return part
  return { ...part, ...(manual === true && { manual }), ...(epoch !== undefined && { epoch: epoch as number }) }
}

function readSentCells(cells: unknown, sent: readonly Cell[]): Cell[] | undefined {
  if (!isListOf(sent.length, cells)) return undefined
  const read: Cell[] = []
  for (let i = 0; i < sent.length; i++) {
    const cell = readCell(cells[i])
    if (cell === undefined || cell.ordinal !== sent[i]?.ordinal) return undefined
    read.push(cell)
  }
  return read
}

/** A window's cells, or a bucket's level. */
function readTotals(cells: unknown, policy: StorePolicy): Cell[] | undefined {
  const read = readWindow(cells, policy)
  if (policy.drain === undefined || read === undefined) return read
  const [cell, ...others] = read
  return cell?.level === undefined || others.length > 0 ? undefined : read
}

function readWindow(cells: unknown, policy: StorePolicy): Cell[] | undefined {
  if (!isList(cells)) return undefined
  const { length } = cells
  if (length > 4 * policy.cells) return undefined
  const read: Cell[] = []
  let last = Number.NEGATIVE_INFINITY
  for (let i = 0; i < length; i++) {
    const cell = readCell(cells[i])
    if (cell === undefined || cell.ordinal <= last) return undefined
    last = cell.ordinal
    read.push(cell)
  }
  return read
}

function readCell(value: unknown): Cell | undefined {
  if (!isObject(value)) return undefined
  const { ordinal, taken, given, level, rejected } = value
  if (!Number.isSafeInteger(ordinal) || !isAmount(taken) || !isAmount(given)) return undefined
  if (!(level === undefined || isAmount(level)) || !(rejected === undefined || isAmount(rejected))) return undefined
  const cell = { ordinal: ordinal as Ordinal, taken, given: Math.min(given, taken) }
  return { ...cell, ...(level !== undefined && { level }), ...(rejected !== undefined && { rejected }) }
}

function readHeartbeat(value: unknown, { heartbeat }: SyncRequest, time: number, nonsense: Nonsense): HeartbeatReply | undefined {
  if (!isObject(value)) return undefined
  const { nodes, generation, cursor, blocks, hot, leases, ahead, watched, statuses, rules } = value
  if (!Number.isSafeInteger(nodes) || (nodes as number) < 1 || (nodes as number) > MOST_NODES) return undefined
  if (!isText(generation, LONGEST_TEXT) || !isText(cursor, LONGEST_TEXT) || !isList(blocks) || !isList(hot)) return undefined
  if (ahead !== undefined && !(typeof ahead === 'number' && isTime(time + ahead))) return undefined
  const policies = new Map(heartbeat?.policies.map((policy) => [policy.id, policy]))
  return {
    nodes: nodes as number,
    generation,
    cursor,
    blocks: readItems(blocks, MOST_ITEMS, readBlock, () => nonsense('a block')),
    hot: readItems(
      hot,
      MOST_ITEMS,
      (item) => {
        if (!isObject(item)) return undefined
        const policy = policies.get(item['policyId'] as string)
        return policy && readTotal(item, policy)
      },
      () => nonsense('a hot key'),
    ),
    ...(isList(leases) && { leases: readItems(leases, MOST_ITEMS, readNotice, () => nonsense('news of a lease')) }),
    ...(ahead !== undefined && { ahead: ahead as number }),
    watched: watched === true,
    ...(isList(statuses) && { statuses: readItems(statuses, MOST_STATUSES, readStatus, () => nonsense('the status of a node')) }),
    ...(isList(rules) && { rules: readItems(rules, MOST_RULES, readRules, () => nonsense('the rules of a node')) }),
  }
}

/** The items of a list that can be used; `bad` is called once if there are others. */
function readItems<Item>(list: readonly unknown[], most: number, read: (item: unknown) => Item | undefined, bad: () => void): Item[] {
  const items: Item[] = []
  const { length } = list
  let wrong = length > most
  for (let i = 0; i < length && i < most; i++) {
    const item = attempt(() => read(list[i]))
    if (item === undefined) wrong = true
    else items.push(item)
  }
  if (wrong) bad()
  return items
}

function readBlock(value: unknown): BlockState | undefined {
  if (!isObject(value)) return undefined
  const { policyId, key, remaining } = value
  if (!isText(policyId, LONGEST_TEXT) || !isText(key, LONGEST_KEY) || !isAmount(remaining)) return undefined
  return readRest({ policyId, key, remaining }, value)
}

function readTotal(value: Loose, policy: StorePolicy): TotalAnnouncement | undefined {
  const { key, cells: given } = value
  if (!isText(key, LONGEST_KEY)) return undefined
  const cells = isListOf(0, given) ? [] : readTotals(given, policy)
  return cells && readRest({ type: 'total', policyId: policy.id, key, cells }, value)
}

function readStatus(value: unknown): StatusReport | undefined {
  if (!isObject(value)) return undefined
  const { node, status, age } = value
  return isText(node, LONGEST_TEXT) && isText(status, LONGEST_TEXT) && isAmount(age) ? { node, status, age } : undefined
}

function readRules(value: unknown): RulesReport | undefined {
  if (!isObject(value)) return undefined
  const { node, rules } = value
  return isText(node, LONGEST_TEXT) && isText(rules, LONGEST_RULES) ? { node, rules } : undefined
}

/**
 * An announcement that concerns this node; undefined for any other.
 *
 * @param policyOf - this node's policy of an id
 */
export function checkAnnouncement(
  value: unknown,
  policyOf: (id: string) => StorePolicy | undefined,
  nonsense: Nonsense,
): Announcement | undefined {
  let id: unknown
  const announcement = attempt((): Announcement | typeof MISSING | undefined => {
    if (!isObject(value)) return undefined
    const { type, policyId, key } = value
    if (typeof policyId !== 'string') return undefined
    id = policyId
    const known = policyOf(policyId)
    if (known === undefined) return MISSING
    if (type === 'total') return readTotal(value, known)
    if (type === 'lease') return readNotice(value)
    if (type === 'ask') return isText(key, LONGEST_KEY) ? { type, policyId, key } : undefined
    if (type !== 'block') return undefined
    const block = readBlock(value)
    return block && { type, ...block }
  })
  if (announcement === undefined) nonsense('an announcement', typeof id === 'string' ? id : undefined)
  return announcement === MISSING ? undefined : announcement
}

type Loose = { readonly [property: string]: unknown }

function isObject(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

function isListOf(length: number, value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length === length
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MOST
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= LATEST
}

function isText(value: unknown, longest: number): value is string {
  return typeof value === 'string' && value.length <= longest
}

/** A hostile object that throws when it is read is treated as a wrong value. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
