import { createHash } from 'node:crypto'
import { evenTags } from './slots.ts'

/** Longer names are replaced by their hash in Redis keys, because a key of 64 KB would be stored several times. */
const LONGEST_NAME = 200

// Control characters and white space would garble logs and announcements. Lone surrogates have no UTF-8 form, so all of them would become
// the same character. `%` starts an escape.
const ESCAPED = /[%\p{Cc}\p{Cs}\p{Z}]/gu
const ESCAPED_IN_POLICY = /[%:\p{Cc}\p{Cs}\p{Z}]/gu
/** Matches most keys: this test takes a fraction of the time of a replacement that finds nothing. */
const PLAIN = /^[!-$&-~]*$/
const ESCAPE = /%u([0-9a-f]{4})|%([0-9a-f]{2})/g

/** Returns a caller's key in a form that Redis, logs and announcements can contain. `unescapeText` reverses it. */
export function escapeKey(key: string): string {
  return PLAIN.test(key) ? key : key.replace(ESCAPED, escapeCharacter)
}

/** Does the same as `escapeKey`, and escapes `:` too, so that the result can be in the middle of a Redis key. */
export function escapePolicy(id: string): string {
  return id.replace(ESCAPED_IN_POLICY, escapeCharacter)
}

export function unescapeText(text: string): string {
  return text.replace(ESCAPE, (_, long: string | undefined, short: string | undefined) =>
    String.fromCharCode(Number.parseInt(long ?? short ?? '', 16)),
  )
}

function escapeCharacter(character: string): string {
  let text = ''
  for (let i = 0; i < character.length; i++) {
    const code = character.charCodeAt(i)
    text += code < 0x100 ? `%${code.toString(16).padStart(2, '0')}` : `%u${code.toString(16).padStart(4, '0')}`
  }
  return text
}

/**
 * Returns the part of a Redis key for a caller's key: the escaped key if it is short, or a hash. An escaped key never begins with `%#`, so
 * the two kinds can't collide.
 */
export function nameOf(escaped: string): string {
  return escaped.length <= LONGEST_NAME ? escaped : `%#${createHash('sha256').update(escaped).digest('base64url')}`
}

/** The most units of one cell: about the sum of a thousand processes with `Number.MAX_SAFE_INTEGER` units each. */
export const MOST_UNITS: number = 2 ** 63

/** The most keys near their limit that a shard lists for processes that start: removing a million at once would block the server. */
export const MOST_HOT = 10_000

/** Redis keys of one shard that do not belong to a single caller's key. All are in the shard's slot. */
export interface ShardKeys {
  readonly prefix: string
  /** Sorted set: block → version of its last change; the empty member has the latest version. */
  readonly log: string
  /** Sorted set: block → when it ends. */
  readonly ends: string
  /** Sorted set: block → until when heartbeats return its changes. */
  readonly keep: string
  /** Sorted set: manual blocks. */
  readonly hand: string
  /** Sorted set: key → its last reset. */
  readonly resets: string
  /** Sorted set: key near its limit → until when. About `MOST_HOT` of them. */
  readonly hot: string
  /** Sorted set: announcement of a lease → until when heartbeats return it. */
  readonly leases: string
  /** Sorted set: process → until when it counts as live. In the first shard only. */
  readonly nodes: string
  /** Hash: process → its status, while another process watches. In the first shard only. */
  readonly status: string
  /** Hash: a report about rules → until when, and the process that sent it last. In the first shard only. */
  readonly rules: string
  /** The time by which the processes are ahead of the server after a step of its clock. In the first shard only. */
  readonly ahead: string
}

/**
 * The names of everything in Redis. The hash tag is a key's shard. It comes before all text that a caller chose, so callers can't choose a
 * slot.
 */
export class Keys {
  readonly shards: readonly ShardKeys[]

  constructor(namespace: string, shards: number) {
    this.shards = evenTags(shards).map((tag) => {
      const prefix = `${namespace}:{${tag}}:`
      return {
        prefix,
        log: `${prefix}blocks:log`,
        ends: `${prefix}blocks:ends`,
        keep: `${prefix}blocks:keep`,
        hand: `${prefix}blocks:hand`,
        resets: `${prefix}resets`,
        hot: `${prefix}hot`,
        leases: `${prefix}leases`,
        nodes: `${prefix}nodes`,
        status: `${prefix}status`,
        rules: `${prefix}rules`,
        ahead: `${prefix}ahead`,
      }
    })
  }

  /** The key of a central policy's state. Scripts add a suffix for each cell. */
  decided(policy: string, key: string): string {
    const name = nameOf(escapeKey(key))
    return `${this.shards[this.shardOf(name)]?.prefix}d:${policy}:${name}`
  }

  /** As `escapePolicy`. */
  escaped(policy: string): string {
    return escapePolicy(policy)
  }

  /** The shard of a caller's key. */
  placeOf(key: string): number {
    return this.shardOf(nameOf(escapeKey(key)))
  }

  /** FNV-1a over the code units of the name: quick, and the same in every process. */
  shardOf(name: string): number {
    if (this.shards.length === 1) return 0
    let hash = 0x811c9dc5
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
    return (hash >>> 0) % this.shards.length
  }
}

/** The number of a process's last sync with a shard. */
export function sequenceKey(shard: ShardKeys, nodeId: string): string {
  return `${shard.prefix}s:${nodeId}`
}

/** The common parts of the keys of one policy's interval, so that each key is made of three parts. */
export interface IntervalKeys {
  /** The readable counter: units taken less units refunded. */
  readonly counterPrefix: string
  /** The counts of each process and their sum, as one text. */
  readonly cellPrefix: string
  readonly suffix: string
}

export function intervalKeys(shard: ShardKeys, policy: string, ordinal: number): IntervalKeys {
  return { counterPrefix: `${shard.prefix}c:${policy}:`, cellPrefix: `${shard.prefix}n:${policy}:`, suffix: `:${ordinal}` }
}

/** The counts of each process for a sliding window, and the sums. */
export function windowKey(shard: ShardKeys, policy: string, name: string): string {
  return `${shard.prefix}w:${policy}:${name}`
}

/** The leases of processes for a key in one interval. */
export function leaseKey(shard: ShardKeys, policy: string, name: string, ordinal: number): string {
  return `${shard.prefix}l:${policy}:${name}:${ordinal}`
}

/** The number of a key's recent blocks. */
export function offenceKey(shard: ShardKeys, policy: string, name: string): string {
  return `${shard.prefix}o:${policy}:${name}`
}
