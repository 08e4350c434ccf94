import type { StorePolicy, SyncEntry, SyncResult } from '@weir/core/sync'
import { escapeKey, escapePolicy, type Keys, leaseKey, nameOf } from '../keys/keys.ts'
import { LEASES } from '../scripts/leases.ts'
import { type Script, script } from '../scripts/script.ts'
import { parseNumber, parseRemaining, replyError } from './wire.ts'

/** The most requests for quota in one script call. It blocks the server for a few milliseconds. */
const MOST_ASKS = 40

export const leaseScript: Script = script(LEASES)

/** The requests for quota that one script call handles, for one shard. */
export class LeaseChunk {
  readonly bucket: number
  /** The indexes of its entries in the sync, in the order of the script's results. */
  readonly places: number[] = []
  readonly keys: string[]
  readonly #policies: unknown[] = []
  readonly #policyPlaces = new Map<StorePolicy, readonly [name: string, number: number]>()
  readonly #asks: unknown[] = []

  constructor(bucket: number, keys: Keys) {
    this.bucket = bucket
    this.keys = [keys.shards[bucket]?.leases as string]
  }

  add(place: number, { policy, lease: ask }: SyncEntry, label: string, name: string, keys: Keys): void {
    if (ask === undefined) return
    let known = this.#policyPlaces.get(policy)
    if (known === undefined) {
      const escaped = escapePolicy(policy.id)
      this.#policyPlaces.set(policy, (known = [escaped, this.#policies.push([escaped, policy.width])]))
    }
    const bucket = keys.shards[this.bucket] as Keys['shards'][number]
    this.places.push(place)
    this.keys.push(leaseKey(bucket, known[0], name, ask.ordinal))
    const { incarnation, seq, granted, returned, taken, given, cleared, epoch, least, waiting, upTo, limit, nodes, early, lifetime, open } =
      ask
    this.#asks.push(known[1], label)
    for (const number of [ask.ordinal, incarnation, seq, granted, returned, taken, given, cleared, epoch, least, waiting, upTo]) {
      this.#asks.push(bounded(number))
    }
    for (const number of [limit, nodes, early, lifetime]) this.#asks.push(bounded(number))
    this.#asks.push(open === undefined ? 0 : open.flatMap(({ due, back }) => [bounded(due), bounded(back)]))
  }

  /** The script's argument. */
  argument(common: object): string {
    return JSON.stringify({ ...common, policies: this.#policies, asks: this.#asks })
  }
}

/** JSON has no infinity. */
function bounded(number: number): number {
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(number, Number.MAX_SAFE_INTEGER))
}

/** Divides requests for quota into script calls, by shard. Calls of one shard run in sequence. */
export function leaseChunksOf(entries: readonly SyncEntry[], keys: Keys): ReadonlyMap<number, readonly LeaseChunk[]> {
  const chunks = new Map<number, LeaseChunk[]>()
  entries.forEach((entry, place) => {
    if (entry.lease === undefined) return
    const label = escapeKey(entry.key)
    const name = nameOf(label)
    const bucket = keys.shardOf(name)
    let list = chunks.get(bucket)
    if (list === undefined) chunks.set(bucket, (list = []))
    let chunk = list.at(-1)
    if (chunk === undefined || chunk.places.length >= MOST_ASKS) list.push((chunk = new LeaseChunk(bucket, keys)))
    chunk.add(place, entry, label, name, keys)
  })
  return chunks
}

/** Reads `granted|free|used|tail|quiet|epoch|now|blocked|manual`. */
export function parseLease(value: unknown): SyncResult {
  const [granted, free, used, tail, quiet, epoch, now, blocked, manual, ...rest] = typeof value === 'string' ? value.split('|', 10) : []
  if ((tail !== '0' && tail !== '1') || (manual !== '' && manual !== '1') || rest.length > 0) throw replyError('a lease')
  return {
    cells: [],
    blocked: parseRemaining(blocked),
    ...(manual === '1' && { manual: true }),
    lease: {
      granted: parseNumber(granted),
      free: parseNumber(free),
      used: parseNumber(used),
      tail: tail === '1',
      quiet: parseNumber(quiet),
      epoch: parseNumber(epoch),
      now: parseNumber(now),
    },
  }
}
