import type { HeartbeatReply, HeartbeatRequest, SyncReply, SyncRequest } from '@weir/core/sync'

/** The part of a sync for one shard. */
export interface Part {
  readonly shard: number
  readonly request: SyncRequest
  /** The places of its entries and blocks in the whole request. */
  readonly entries: readonly number[]
  readonly blocks: readonly number[]
}

/** The shard of a key. All policies use the same one, because a request may be decided by several policies at once. */
export function shardOf(key: string, shards: number): number {
  if (shards === 1) return 0
  // FNV-1a, with a last step that mixes the low bits.
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return ((hash ^ (hash >>> 15)) >>> 0) % shards
}

/** Heartbeats go to all shards. Reports about processes go to the first one only. */
export function split(request: SyncRequest, shards: number): readonly Part[] {
  const { entries, blocks, heartbeat, time } = request
  const parts: Part[] = []
  for (let shard = 0; shard < shards; shard++) {
    const ofShard = (all: readonly { readonly key: string }[]) =>
      all.flatMap(({ key }, place) => (shardOf(key, shards) === shard ? [place] : []))
    const [own, ownBlocks] = [ofShard(entries), ofShard(blocks)]
    if (heartbeat === undefined && own.length + ownBlocks.length === 0) continue
    parts.push({
      shard,
      entries: own,
      blocks: ownBlocks,
      request: {
        entries: own.map((place) => entries[place] as (typeof entries)[number]),
        blocks: ownBlocks.map((place) => blocks[place] as (typeof blocks)[number]),
        ...(time !== undefined && { time }),
        ...(heartbeat && { heartbeat: beatOf(heartbeat, shard) }),
      },
    })
  }
  // A request without any part asks for the store's time.
  return parts.length > 0 ? parts : [{ shard: 0, request, entries: [], blocks: [] }]
}

function beatOf(heartbeat: HeartbeatRequest, shard: number): HeartbeatRequest {
  const { cursor, status, rules, watch, ...rest } = heartbeat
  const part = cursor?.split(',')[shard]
  return { ...rest, cursor: part === '' ? undefined : part, ...(shard === 0 && defined({ status, rules, watch })) }
}

/**
 * @param generations - for each shard the last known one. Changed in place
 * @throws the first error if no part succeeded
 */
export function joined(
  request: SyncRequest,
  parts: readonly Part[],
  outcomes: readonly PromiseSettledResult<SyncReply>[],
  generations: string[],
): SyncReply {
  const replies = parts.flatMap((part, i) => {
    const outcome = outcomes[i]
    return outcome?.status === 'fulfilled' ? [{ part, reply: outcome.value }] : []
  })
  const [first] = replies
  if (first === undefined) throw (outcomes[0] as PromiseRejectedResult).reason
  if (generations.length === 1) return first.reply
  const results: SyncReply['results'][number][] = Array.from({ length: request.entries.length }, () => undefined)
  const blocks: SyncReply['blocks'][number][] = Array.from({ length: request.blocks.length }, () => undefined)
  for (const { part, reply } of replies) {
    for (const [i, place] of part.entries.entries()) results[place] = reply.results[i]
    for (const [i, place] of part.blocks.entries()) blocks[place] = reply.blocks[i]
  }
  const beats = replies.flatMap(({ part, reply }) => (reply.heartbeat ? [{ shard: part.shard, beat: reply.heartbeat }] : []))
  return { time: first.reply.time, results, blocks, ...(beats.length > 0 && { heartbeat: joinedBeats(request, beats, generations) }) }
}

function joinedBeats(
  { heartbeat }: SyncRequest,
  beats: readonly { readonly shard: number; readonly beat: HeartbeatReply }[],
  generations: string[],
): HeartbeatReply {
  const byShard = new Map(beats.map(({ shard, beat }) => [shard, beat]))
  const cursors = heartbeat?.cursor?.split(',') ?? []
  const all = beats.map(({ beat }) => beat)
  for (const { shard, beat } of beats) generations[shard] = beat.generation
  const { ahead, statuses, rules } = Object.assign({}, ...all) as Partial<HeartbeatReply>
  return {
    nodes: Math.max(...all.map(({ nodes }) => nodes)),
    // A shard that is down keeps its cursor, so its news come later.
    cursor: generations.map((_, shard) => byShard.get(shard)?.cursor ?? cursors[shard] ?? '').join(','),
    generation: generations.join(','),
    blocks: all.flatMap(({ blocks }) => blocks),
    hot: all.flatMap(({ hot }) => hot),
    watched: all.some(({ watched }) => watched === true),
    ...(heartbeat?.leases && { leases: all.flatMap(({ leases = [] }) => leases) }),
    ...defined({ ahead, statuses, rules }),
  }
}

/** A copy without properties that are undefined. */
function defined<T extends object>(values: T): { [N in keyof T]?: Exclude<T[N], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
