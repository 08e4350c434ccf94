import {
  ABSENT,
  attempt,
  each,
  ifUsable,
  isNumber,
  isObject,
  list,
  MOST,
  mark,
  number,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  raw,
  row,
  text,
  whole,
} from '../report/readers.ts'
import type { BlockChange, Cell, HeartbeatRequest, StorePolicy, SyncEntry, SyncReply, SyncRequest } from '../store/contract.ts'
import { LATEST, LONGEST_AUDITED, MOST_AUDITED, shapeOf } from '../store/contract.ts'
import { type LeaseAsk, type LeaseReturn, MOST_RETURNS } from '../store/leases/ask.ts'
import { LONGEST_KEY } from '../sync/link/store-reply.ts'
import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type IpcMessage, LEASE_NUMBERS, MARK, VERSION } from './envelope.ts'

/**
 * Checks every message of a channel between parent and child before other code reads it. Messages of other programs are ignored. The parts
 * of our own messages:
 *
 *     node      1 to 64 printable characters without white space and ":"
 *     id        a whole number
 *     policies  at most MOST_POLICIES of `[id, width, cells, limit, hot, ttl, drain?, maxDebt?]`. A cell lives for MOST_LIVES windows at
 *               most
 *     entries   at most MOST_ENTRIES of `[policy, key, cells, epoch?, ask?, lease?]`. A cell has three numbers, or five for a bucket. A
 *               lease has LEASE_NUMBERS, then two numbers for each of at most MOST_RETURNS open reservations
 *     blocks    at most MOST_ENTRIES of `[policy, key, kind, remaining, growth, epoch?, manual?]`. They last a year at most
 *     time      within a day of this process's clock, because both run on one machine
 *     audit     an entry of at most LONGEST_AUDITED units, or the number of entries to read
 *     heartbeat { ttl, cursor, policies, status?, rules?, leases?, watch? }
 *
 * A missing or too long list makes the message invalid. An invalid entry, block or policy is dropped alone. Replies and announcements of a
 * parent are checked in `store-reply.ts`, as for any store.
 */

const MOST_POLICIES = 1_000
/** Core sends 200 at a time. */
const MOST_ENTRIES = 20_000
/** A sliding window has up to 7,936. */
const MOST_CELLS = 8_192
const LONGEST_ID = 512
const LONGEST_STATUS = 8_192
const LONGEST_CURSOR = 64
const YEAR = 366 * 86_400_000
const DAY = 86_400_000
/**
 * The most by which leases may be granted early. With the numbers that processes give to months, a store assumes that a month begins up to
 * 33 days later than it does, and the last span may be half a month.
 */
const EARLIEST = 62 * DAY
/** The most windows for which a cell lives after it was last written. Core sends two. */
const MOST_LIVES = 16

/** Returns a message of ours with a valid frame, or undefined for any other value that comes along a channel. */
export function readMessage(value: unknown): IpcMessage | undefined {
  return attempt(() => (isObject(value) && Object.hasOwn(value, MARK) && value[MARK] === VERSION ? readFrame(value['message']) : undefined))
}

function readFrame(message: unknown): IpcMessage | undefined {
  if (!isObject(message)) return undefined
  const { kind, node, id } = message
  // The receiving process checks an announcement.
  if (kind === 'announcement') return { kind, announcement: message['announcement'] as never }
  if (!isNodeId(node)) return undefined
  if (kind === 'join' || kind === 'leave') return { kind, node }
  if (!Number.isSafeInteger(id)) return undefined
  const at = { node, id: id as number }
  if (kind === 'request') return { kind, ...at, request: message['request'] as never }
  if (kind === 'ask') return { kind, ...at, ask: message['ask'] as never }
  if (kind === 'verdicts') return { kind, ...at, verdicts: message['verdicts'] }
  if (kind === 'audit') return readAudit(message, at)
  if (kind === 'audited') return { kind, ...at, entries: message['entries'] }
  if (kind === 'reply') return { kind, ...at, reply: readReply(message['reply']) }
  if (kind !== 'failure' || typeof message['message'] !== 'string') return undefined
  return { kind, ...at, message: message['message'].slice(0, 200) }
}

/** Whether a value can be the id of a process. */
export function isNodeId(value: unknown): value is string {
  return typeof value === 'string' && /^[!-9;-~]{1,64}$/.test(value)
}

function readAudit(
  message: { readonly [name: string]: unknown },
  at: { readonly node: string; readonly id: number },
): IpcMessage | undefined {
  const { entry, most } = message
  if (!isNumber(most, 0, MOST_AUDITED) || (entry !== undefined && readAudited(entry) === undefined)) return undefined
  return { kind: 'audit', ...at, most, ...(entry !== undefined && { entry: entry as string }) }
}

/** Restores failed parts: JSON has no undefined, so they arrive as null. The process that sent the request checks everything else. */
function readReply(reply: unknown): SyncReply {
  if (!isObject(reply)) return reply as never
  const filled = (list: unknown): unknown => (Array.isArray(list) ? list.map((part: unknown) => part ?? undefined) : list)
  return { ...reply, results: filled(reply['results']), blocks: filled(reply['blocks']) } as SyncReply
}

/** A request without its invalid parts. */
export interface CheckedRequest {
  readonly request: SyncRequest
  /** Adds the removed parts to the reply, as failed ones. */
  complete(reply: SyncReply): SyncReply
  /** The fault, if there is one. */
  readonly wrong: string | undefined
}

/** @returns undefined if no part of the request can be used */
export function readRequest(packed: unknown, now: number): CheckedRequest | undefined {
  let wrong: string | undefined
  const bad = (what: string) => (): void => {
    wrong ??= what
  }
  const frame = readParts(packed)
  const policies = each(MOST_POLICIES, readPolicy, bad('a policy'))(frame?.policies)
  if (frame === undefined || policies === undefined) return undefined
  const { time, heartbeat } = frame
  const entries = each(MOST_ENTRIES, (value) => entryOf(value, policies), bad('an entry'))(frame.entries)
  const blocks = each(MOST_ENTRIES, (value) => blockOf(value, policies), bad('a block'))(frame.blocks)
  if (entries === undefined || blocks === undefined) return undefined
  const isNear = isNumber(time, -MOST, MOST) && Math.abs(time - now) <= DAY
  if (time !== null && !isNear) bad('the time')()
  const beat = heartbeat === null ? undefined : heartbeatOf(heartbeat, policies)
  if (heartbeat !== null && beat === undefined) bad('a heartbeat')()
  return {
    request: {
      ...(isNear && { time }),
      entries: entries.filter((entry) => entry !== undefined),
      blocks: blocks.filter((block) => block !== undefined),
      ...(beat !== undefined && { heartbeat: beat }),
    },
    complete: (reply) => ({ ...reply, results: spread(entries, reply.results), blocks: spread(blocks, reply.blocks) }),
    wrong,
  }
}

type Policies = readonly (StorePolicy | undefined)[]

const readAudited = text(LONGEST_AUDITED)
const readPlace = number(0, MOST_POLICIES)
const key = text(LONGEST_KEY)
/** Units of a limit, or null for no bound. */
const readUnits = orNull(number(0, Number.MAX_VALUE), Number.POSITIVE_INFINITY)
/** A time by a process's clock, or 0 for none. Processes with `'periodic'` use their own clock. */
const readEpoch: Reader<number | typeof ABSENT> = (value) => (value === undefined || value === 0 ? ABSENT : whole(0, LATEST)(value))

const readParts = object({ time: raw, policies: raw, entries: raw, blocks: raw, heartbeat: raw })

const readPolicyFields = row({
  id: text(LONGEST_ID),
  width: number(1, MOST),
  cells: whole(1, MOST_CELLS),
  limit: readUnits,
  hot: readUnits,
  ttl: number(0, Number.MAX_VALUE),
  drain: optional(readUnits),
  maxDebt: optional(orNull(number(0, Number.MAX_VALUE), ABSENT)),
})

function readPolicy(value: unknown): StorePolicy | undefined {
  const policy = readPolicyFields(value)
  return policy && policy.ttl <= MOST_LIVES * policy.cells * policy.width ? policy : undefined
}

const readEntry = row({ policy: readPlace, key, cells: raw, epoch: readEpoch, ask: mark, lease: optional(readLeaseAsk) })

function entryOf(value: unknown, policies: Policies): SyncEntry | undefined {
  const entry = readEntry(value)
  const policy = entry && policies[entry.policy]
  if (entry === undefined || policy === undefined) return undefined
  const shape = shapeOf(policy)
  if (entry.lease === undefined) {
    const cells = readCells(entry.cells, shape === 'bucket' ? 5 : 3)
    return cells && { ...entry, policy, cells }
  }
  // A lease contains its own epoch.
  const { epoch: _, ...lease } = entry
  return shape === 'fixed' ? { ...lease, policy, cells: [] } : undefined
}

const readBlock = row({
  policy: readPlace,
  key,
  kind: oneOf<BlockChange['kind']>('exceeded', 'set', 'restore', 'lift', 'reset'),
  remaining: number(0, YEAR),
  growth: orNull(readGrowth, ABSENT),
  epoch: readEpoch,
  manual: mark,
})

function blockOf(value: unknown, policies: Policies): BlockChange | undefined {
  const block = readBlock(value)
  const policy = block && policies[block.policy]
  return block && policy && { ...block, policy }
}

const readHeartbeat = object({
  ttl: number(1, DAY),
  cursor: orNull(text(LONGEST_CURSOR), ABSENT),
  policies: list(MOST_POLICIES, raw),
  status: ifUsable(text(LONGEST_STATUS)),
  leases: mark,
  rules: ifUsable(text(LONGEST_STATUS)),
  watch: mark,
})

function heartbeatOf(value: unknown, policies: Policies): HeartbeatRequest | undefined {
  const heartbeat = readHeartbeat(value)
  if (heartbeat === undefined) return undefined
  const known = heartbeat.policies.map((place) => policies[readPlace(place) ?? -1]).filter((policy) => policy !== undefined)
  return { cursor: undefined, ...heartbeat, policies: known }
}

const readNumber = number(-MOST, MOST)

/** @param size - numbers of a cell */
function readCells(value: unknown, size: 3 | 5): Cell[] | undefined {
  const flat = list(size * MOST_CELLS, readNumber)(value)
  if (flat === undefined || flat.length % size !== 0) return undefined
  const cells: Cell[] = []
  for (let i = 0; i < flat.length; i += size) {
    const [ordinal, taken, given] = flat.slice(i, i + 3) as [Ordinal, number, number]
    const [rejected, level] = size === 5 ? (flat.slice(i + 3, i + 5) as [number, number]) : [0, 0]
    if (!Number.isSafeInteger(ordinal) || Math.min(taken, given, rejected, level) < 0) return undefined
    const cell: { -readonly [N in keyof Cell]: Cell[N] } = { ordinal, taken, given: Math.min(given, taken) }
    if (rejected > 0) cell.rejected = rejected
    if (level > 0) cell.level = level
    cells.push(cell)
  }
  return cells
}

const units = number(0, MOST)
const readLeaseFields = row(
  {
    ...(Object.fromEntries(LEASE_NUMBERS.map((name) => [name, units])) as {
      readonly [N in (typeof LEASE_NUMBERS)[number]]: Reader<number>
    }),
    ordinal: whole<Ordinal>(0, MOST),
  },
  LEASE_NUMBERS.length + 2 * MOST_RETURNS,
)

function readLeaseAsk(value: unknown): LeaseAsk | undefined {
  const ask = readLeaseFields(value)
  if (ask === undefined || ask.early > EARLIEST || ask.lifetime > DAY || ask.nodes < 1) return undefined
  const numbers = (value as readonly unknown[]).slice(LEASE_NUMBERS.length)
  if (numbers.length === 0) return ask
  const open: LeaseReturn[] = []
  for (let i = 0; i < numbers.length; i += 2) {
    const [due, back] = numbers.slice(i, i + 2)
    if (!isNumber(due, 0, MOST) || !isNumber(back, -MOST, MOST)) return undefined
    open.push({ due, back })
  }
  return { ...ask, open }
}

const readGrowthFields = object({ factor: number(1, 100), max: number(0, Number.MAX_VALUE), memory: number(0, Number.MAX_VALUE) })

function readGrowth(value: unknown): CooldownGrowth | undefined {
  const growth = readGrowthFields(value)
  return growth && { factor: growth.factor, max: Math.min(growth.max, YEAR), memory: Math.min(growth.memory, YEAR) }
}

/** Makes a list as long as `parts`, with undefined for each part that was removed. */
function spread<T>(parts: readonly unknown[], answers: readonly (T | undefined)[]): (T | undefined)[] {
  let next = 0
  return parts.map((part) => (part === undefined ? undefined : answers[next++]))
}
