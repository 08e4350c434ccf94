import type { BlockChange, Cell, HeartbeatRequest, StorePolicy, SyncEntry, SyncReply, SyncRequest } from '../store/contract.ts'
import { LATEST } from '../store/contract.ts'
import type { LeaseAsk } from '../store/leases/ask.ts'
import { LONGEST_KEY } from '../sync/link/store-reply.ts'
import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type IpcMessage, LEASE_NUMBERS, MARK, VERSION } from './envelope.ts'

/*
 * Checks every message of a channel between parent and child before other code reads it. Messages of other programs are ignored. The parts
 * of our own messages:
 *
 *     node      1 to 64 printable characters without white space and ":"
 *     id        a whole number
 *     policies  at most MOST_POLICIES of [id, width, cells, limit, hot, ttl, drain?, maxDebt?]; a cell lives for some windows at most
 *     entries   at most MOST_ENTRIES of [policy, key, cells, epoch?, ask?, lease?]; cells are three numbers each, or of a bucket five, a lease as
 *               many as LEASE_NUMBERS has
 *     blocks    at most MOST_ENTRIES of [policy, key, kind, remaining, growth, epoch?, manual?]; a year at most
 *     time      within a day of this process's clock: both run on one machine
 *     heartbeat { ttl, cursor, policies, status?, rules?, leases?, watch? }
 *
 * A list that is none, or too long, makes the message useless; an entry, a block or a policy stands for itself. What a parent
 * answers and announces is checked where any store's words are, in `store-reply.ts`.
 */

const MOST_POLICIES = 1_000
/** Core sends 200 at once. */
const MOST_ENTRIES = 20_000
/** A sliding window has up to 7,936. */
const MOST_CELLS = 8_192
const MOST: number = Number.MAX_SAFE_INTEGER
const LONGEST_ID = 512
const LONGEST_STATUS = 8_192
const LONGEST_CURSOR = 64
const YEAR = 366 * 86_400_000
const DAY = 86_400_000
/** Nodes number months so that a store takes them to begin up to 33 days later than they do; and the last span may be half a month. */
const EARLIEST = 62 * DAY
/** Windows for which a cell lives at most after it was last written; core asks for two. */
const MOST_LIVES = 16

/** Our message, its frame checked; undefined for anything else that comes along a channel. */
export function readMessage(value: unknown): IpcMessage | undefined {
  try {
    if (!isObject(value) || !Object.hasOwn(value, MARK) || value[MARK] !== VERSION) return undefined
    return readFrame(value['message'])
  } catch {
    // Somebody's object that can't even be looked at.
    return undefined
  }
}

function readFrame(message: unknown): IpcMessage | undefined {
  if (!isObject(message)) return undefined
  const { kind, node, id } = message
  // The receiving process checks an announcement.
  if (kind === 'announcement') return { kind, announcement: message['announcement'] as never }
  if (typeof node !== 'string' || !/^[!-9;-~]{1,64}$/.test(node)) return undefined
  if (kind === 'join' || kind === 'leave') return { kind, node }
  if (!Number.isSafeInteger(id)) return undefined
  const at = { node, id: id as number }
  if (kind === 'request') return { kind, ...at, request: message['request'] as never }
  if (kind === 'ask') return { kind, ...at, ask: message['ask'] as never }
  if (kind === 'verdicts') return { kind, ...at, verdicts: message['verdicts'] }
  if (kind === 'reply') return { kind, ...at, reply: readReply(message['reply']) }
  if (kind !== 'failure' || typeof message['message'] !== 'string') return undefined
  return { kind, ...at, message: message['message'].slice(0, 200) }
}

/** JSON has no undefined: parts that failed came as null. All else is checked by the node that asked. */
function readReply(reply: unknown): SyncReply {
  if (!isObject(reply)) return reply as never
  const filled = (list: unknown): unknown => (Array.isArray(list) ? list.map((part: unknown) => part ?? undefined) : list)
  return { ...reply, results: filled(reply['results']), blocks: filled(reply['blocks']) } as SyncReply
}

/** A request whose bad parts were taken out. */
export interface CheckedRequest {
  readonly request: SyncRequest
  /** Puts the parts that were taken out into the reply, as such that failed. */
  complete(reply: SyncReply): SyncReply
  /** The fault, if there is one. */
  readonly wrong: string | undefined
}

/** @returns undefined when nothing of the request can be used */
export function readRequest(packed: unknown, now: number): CheckedRequest | undefined {
  try {
    return new RequestReader(now).read(packed)
  } catch {
    return undefined
  }
}

class RequestReader {
  readonly #now: number
  #policies: (StorePolicy | undefined)[] = []
  #wrong: string | undefined

  constructor(now: number) {
    this.#now = now
  }

  read(packed: unknown): CheckedRequest | undefined {
    if (!isObject(packed)) return undefined
    const { time, policies, entries, blocks, heartbeat } = packed
    if (!isList(policies, MOST_POLICIES) || !isList(entries, MOST_ENTRIES) || !isList(blocks, MOST_ENTRIES)) return undefined
    this.#policies = policies.map((policy) => this.#part('a policy', () => readPolicy(policy)))
    const readEntries = entries.map((entry) => this.#part('an entry', () => this.#entry(entry)))
    const readBlocks = blocks.map((block) => this.#part('a block', () => this.#block(block)))
    const isNear = isNumber(time, -MOST, MOST) && Math.abs(time - this.#now) <= DAY
    if (time !== null && !isNear) this.#wrong ??= 'the time'
    const beat = heartbeat === null ? undefined : this.#part('a heartbeat', () => this.#heartbeat(heartbeat))
    return {
      request: {
        ...(isNear && { time }),
        entries: readEntries.filter((entry) => entry !== undefined),
        blocks: readBlocks.filter((block) => block !== undefined),
        ...(beat !== undefined && { heartbeat: beat }),
      },
      complete: (reply) => ({
        ...reply,
        results: spread(readEntries, reply.results),
        blocks: spread(readBlocks, reply.blocks),
      }),
      wrong: this.#wrong,
    }
  }

  #part<T>(what: string, read: () => T | undefined): T | undefined {
    let part: T | undefined
    try {
      part = read()
    } catch {
      // The same as a wrong value.
    }
    if (part === undefined) this.#wrong ??= what
    return part
  }

  #policyAt(place: unknown): StorePolicy | undefined {
    return isNumber(place, 0, MOST_POLICIES) ? this.#policies[place] : undefined
  }

  #entry(value: unknown): SyncEntry | undefined {
    if (!isList(value, 6)) return undefined
    const [place, key, flat, epoch = 0, ask, numbers] = value
    const policy = this.#policyAt(place)
    if (policy === undefined || !isKey(key) || !isEpoch(epoch)) return undefined
    const cells = readCells(flat, policy.drain === undefined ? 3 : 5)
    const lease = numbers === undefined ? undefined : readLeaseAsk(numbers)
    if (numbers !== undefined && (lease === undefined || policy.cells !== 1)) return undefined
    if (lease !== undefined) return { policy, key, cells: [], lease, ...(ask === true && { ask }) }
    return cells && { policy, key, cells, ...(epoch > 0 && { epoch }), ...(ask === true && { ask }) }
  }

  #block(value: unknown): BlockChange | undefined {
    if (!isList(value, 7)) return undefined
    const [place, key, kind, remaining, grown, epoch = 0, manual] = value
    const policy = this.#policyAt(place)
    if (policy === undefined || !isKey(key) || !isNumber(remaining, 0, YEAR) || !isEpoch(epoch)) return undefined
    if (kind !== 'exceeded' && kind !== 'set' && kind !== 'restore' && kind !== 'lift' && kind !== 'reset') return undefined
    const change: BlockChange = { policy, key, kind, remaining, ...(epoch > 0 && { epoch }), ...(manual === true && { manual }) }
    if (grown === null) return change
    const growth = readGrowth(grown)
    return growth && { ...change, growth }
  }

  #heartbeat(value: unknown): HeartbeatRequest | undefined {
    if (!isObject(value)) return undefined
    const { ttl, cursor, policies, status, rules, leases, watch } = value
    if (!isNumber(ttl, 1, DAY) || !isList(policies, MOST_POLICIES)) return undefined
    if (!(cursor === null || (typeof cursor === 'string' && cursor.length <= LONGEST_CURSOR))) return undefined
    return {
      ttl,
      cursor: cursor ?? undefined,
      policies: policies.map((place) => this.#policyAt(place)).filter((policy) => policy !== undefined),
      ...(typeof status === 'string' && status.length <= LONGEST_STATUS && { status }),
      ...(leases === true && { leases }),
      ...(typeof rules === 'string' && rules.length <= LONGEST_STATUS && { rules }),
      ...(watch === true && { watch }),
    }
  }
}

function readPolicy(value: unknown): StorePolicy | undefined {
  if (!isList(value, 8)) return undefined
  const [id, width, cells, limit, hot, ttl, drain, maxDebt = null] = value
  if (typeof id !== 'string' || id.length > LONGEST_ID || !isNumber(width, 1, MOST) || !isNumber(cells, 1, MOST_CELLS)) return undefined
  if (!Number.isInteger(cells) || !isNumber(ttl, 0, MOST_LIVES * cells * width)) return undefined
  if (!(limit === null || isNumber(limit, 0, Number.MAX_VALUE)) || !(hot === null || isNumber(hot, 0, Number.MAX_VALUE))) return undefined
  const policy: StorePolicy = {
    id,
    width,
    cells,
    limit: limit ?? Number.POSITIVE_INFINITY,
    hot: hot ?? Number.POSITIVE_INFINITY,
    ttl,
  }
  if (drain === undefined) return policy
  if (!(drain === null || isNumber(drain, 0, Number.MAX_VALUE)) || !(maxDebt === null || isNumber(maxDebt, 0, Number.MAX_VALUE)))
    return undefined
  return { ...policy, drain: drain ?? Number.POSITIVE_INFINITY, ...(maxDebt !== null && { maxDebt }) }
}

/** @param size - numbers of a cell */
function readCells(flat: unknown, size: 3 | 5): Cell[] | undefined {
  if (!isList(flat, size * MOST_CELLS) || flat.length % size !== 0) return undefined
  const cells: Cell[] = []
  for (let i = 0; i < flat.length; i += size) {
    const [ordinal, taken, given] = [flat[i], flat[i + 1], flat[i + 2]]
    const [rejected, level] = size === 5 ? [flat[i + 3], flat[i + 4]] : [0, 0]
    if (
      !Number.isSafeInteger(ordinal) ||
      !isNumber(taken, 0, MOST) ||
      !isNumber(given, 0, MOST) ||
      !isNumber(rejected, 0, MOST) ||
      !isNumber(level, 0, MOST)
    )
      return undefined
    cells.push({
      ordinal: ordinal as Ordinal,
      taken,
      given: Math.min(given, taken),
      ...(rejected > 0 && { rejected }),
      ...(level > 0 && { level }),
    })
  }
  return cells
}

function readLeaseAsk(numbers: unknown): LeaseAsk | undefined {
  if (!isList(numbers, LEASE_NUMBERS.length) || numbers.length !== LEASE_NUMBERS.length) return undefined
  if (!numbers.every((number) => isNumber(number, 0, MOST)) || !Number.isSafeInteger(numbers[0])) return undefined
  const ask = Object.fromEntries(LEASE_NUMBERS.map((name, i) => [name, numbers[i]])) as unknown as LeaseAsk
  return ask.early <= EARLIEST && ask.lifetime <= DAY && ask.nodes >= 1 ? ask : undefined
}

function readGrowth(value: unknown): CooldownGrowth | undefined {
  if (!isObject(value)) return undefined
  const { factor, max, memory } = value
  if (!isNumber(factor, 1, 100) || !isNumber(max, 0, Number.MAX_VALUE) || !isNumber(memory, 0, Number.MAX_VALUE)) return undefined
  return { factor, max: Math.min(max, YEAR), memory: Math.min(memory, YEAR) }
}

/** As long as `parts` again; where one was taken out, undefined. */
function spread<T>(parts: readonly unknown[], answers: readonly (T | undefined)[]): (T | undefined)[] {
  let next = 0
  return parts.map((part) => (part === undefined ? undefined : answers[next++]))
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null
}

function isList(value: unknown, longest: number): value is readonly unknown[] {
  return Array.isArray(value) && value.length <= longest
}

function isNumber(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most
}

/** A moment by a clock of a node; 0 for none. Nodes of `'periodic'` go by their own. */
function isEpoch(value: unknown): value is number {
  return Number.isSafeInteger(value) && isNumber(value, 0, LATEST)
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_KEY
}
