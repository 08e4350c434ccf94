import type { HeartbeatReply, SyncReply, SyncRequest } from '@weir/core/sync'

/** The shard of a key. All policies use the same one, because a request may be decided by several policies at once. */
export function shardOf(key: string, shards: number): number {
  if (shards === 1) return 0
  // FNV-1a, with a last step that mixes the low bits.
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return ((hash ^ (hash >>> 15)) >>> 0) % shards
}

/**
 * The part of a sync for each shard, if there is one. Heartbeats go to all shards, and reports about processes to the first one only. A
 * request without any part gets the time of the first one.
 */
export function split(request: SyncRequest, shards: number): readonly (SyncRequest | undefined)[] {
  const { heartbeat, entries, blocks } = request
  const isEmpty = heartbeat === undefined && entries.length + blocks.length === 0
  return Array.from({ length: shards }, (_, shard) => {
    const own = <T extends { readonly key: string }>(all: readonly T[]) => all.filter(({ key }) => shardOf(key, shards) === shard)
    const part = { ...request, entries: own(entries), blocks: own(blocks) }
    if (heartbeat === undefined) return part.entries.length + part.blocks.length > 0 || (isEmpty && shard === 0) ? part : undefined
    const { status, rules, watch, ...lean } = heartbeat
    return { ...part, heartbeat: { ...lean, ...(shard === 0 && heartbeat), cursor: heartbeat.cursor?.split(',')[shard] || undefined } }
  })
}

/**
 * Joins the replies of all shards. Keys of a shard without a reply have no result.
 *
 * @param generations - for each shard the last known one. Changed in place
 */
export function joined(request: SyncRequest, replies: readonly (SyncReply | undefined)[], generations: string[]): SyncReply {
  const answered = replies.filter((reply) => reply !== undefined)
  const inOrder = <R>(
    asked: readonly { readonly key: string }[],
    partOf: (reply: SyncReply) => readonly R[],
  ): readonly (R | undefined)[] => {
    const parts = replies.map((reply) => reply && partOf(reply).values())
    return asked.map(({ key }) => parts[shardOf(key, replies.length)]?.next().value)
  }
  const beats = replies.map((reply) => reply?.heartbeat)
  return {
    ...(answered[0] as SyncReply),
    results: inOrder(request.entries, ({ results }) => results),
    blocks: inOrder(request.blocks, ({ blocks }) => blocks),
    ...(beats.some((beat) => beat !== undefined) && { heartbeat: joinedBeats(request, beats, generations) }),
  }
}

function joinedBeats({ heartbeat }: SyncRequest, beats: readonly (HeartbeatReply | undefined)[], generations: string[]): HeartbeatReply {
  const cursors = heartbeat?.cursor?.split(',') ?? []
  const all = beats.filter((beat) => beat !== undefined)
  for (const [shard, beat] of beats.entries()) generations[shard] = beat?.generation ?? generations[shard] ?? ''
  return {
    ...Object.assign({}, ...all),
    nodes: Math.max(...all.map(({ nodes }) => nodes)),
    // A shard that is down keeps its cursor, so its news come later.
    cursor: beats.map((beat, shard) => beat?.cursor ?? cursors[shard] ?? '').join(','),
    generation: generations.join(','),
    blocks: all.flatMap(({ blocks }) => blocks),
    hot: all.flatMap(({ hot }) => hot),
    watched: all.some(({ watched }) => watched === true),
    ...(heartbeat?.leases && { leases: all.flatMap(({ leases = [] }) => leases) }),
  }
}
