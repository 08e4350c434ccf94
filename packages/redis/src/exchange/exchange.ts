import type {
  BlockChange,
  BlockState,
  Cell,
  HeartbeatReply,
  HeartbeatRequest,
  LeaseNotice,
  RulesReport,
  Shape,
  StatusReport,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
  TotalAnnouncement,
} from '@weir/core/sync'
import { lastCellOf, lifeOf, loadCode, ordinalAt, shapeOf } from '@weir/core/sync'
import { type Keys, MOST_HOT } from '../keys/keys.ts'
import { EXCHANGE } from '../scripts/exchange.ts'
import { HEARTBEAT } from '../scripts/heartbeat.ts'
import { type Script, script } from '../scripts/script.ts'
import { type Chunk, chunksOf } from './chunks.ts'
import type { Answer, Moment, Shard } from './shard.ts'
import {
  parseBlock,
  parseMember,
  parseNews,
  parseNumber,
  parseRemaining,
  parseResult,
  parseRules,
  parseStatuses,
  parseWhole,
  replyError,
  understood,
} from './wire.ts'

const exchangeScript = script(EXCHANGE)
const heartbeatScript = script(HEARTBEAT)
/** Scripts by shape. The others are loaded at first use, so that an application without such algorithms doesn't load them. */
const loaded = new Map<Shape, Script>([['fixed', exchangeScript]])

async function load(shape: Shape): Promise<void> {
  const source =
    shape === 'sliding'
      ? (await loadCode(() => import('../scripts/exchange-with-sliding.ts'))).EXCHANGE_WITH_SLIDING
      : (await loadCode(() => import('../scripts/exchange-with-buckets.ts'))).EXCHANGE_WITH_BUCKETS
  loaded.set(shape, script(source))
}
type Leases = typeof import('./leases.ts')
/** Loaded when a process first takes quota ahead, for the same reason. */
let leases: Leases | undefined
/** The most changed blocks in one reply to a heartbeat. */
const PAGE = 1000
/** The most calls of one heartbeat to a shard. The next heartbeat receives the rest. */
const MOST_PAGES = 256

/** State that the syncs of one process share. */
export interface ExchangeContext {
  readonly keys: Keys
  readonly shards: readonly Shard[]
  readonly channel: string | undefined
  /** Live processes at the last count, for heartbeats that don't reach the shard with their list. */
  nodes: number
  /** The last reply of the reference server, which has the first shard, on its clock and on this process's. */
  reference: Moment | undefined
  /** The time of the last reply of any server, on the process's monotonic clock. */
  heardAt: number
  generation(): string
  /** Receives the names of values that a script could not read. */
  lost(names: unknown): void
  /** Called if a shard has lost blocks that this process had received. */
  blocksLost(): void
  /** Called if code for the sync could not be loaded. */
  notLoaded(cause: unknown): void
}

/**
 * One sync. Shards are called in parallel, and the chunks of a shard in sequence, so that other clients of the server get their turn. At
 * the timeout, parts that were answered count, and the rest has failed.
 */
export class Exchange {
  readonly #request: SyncRequest
  readonly #context: ExchangeContext
  readonly #progressed: () => void
  readonly #life: number
  readonly #results: (SyncResult | undefined)[]
  readonly #blocks: (number | undefined)[]
  #heartbeat: HeartbeatReply | undefined
  #watched = false
  #ahead: number | undefined
  #statuses: readonly StatusReport[] | undefined
  #rules: readonly RulesReport[] | undefined
  #answers = 0
  #moment: Moment | undefined
  #error: unknown
  readonly #nodesTime: Moment | undefined

  /** @param progressed - called at each reply, so that a large sync may take longer than the timeout */
  constructor(request: SyncRequest, context: ExchangeContext, begun: number, progressed: () => void) {
    this.#request = request
    this.#life = lifeOf(request)
    this.#nodesTime = request.time === undefined ? undefined : { time: request.time, middle: begun }
    this.#context = context
    this.#progressed = progressed
    this.#results = request.entries.map(() => undefined)
    this.#blocks = request.blocks.map(() => undefined)
  }

  /** Whether any server answered. */
  get answered(): boolean {
    return this.#answers > 0
  }

  /** The first error of its parts. */
  get error(): unknown {
    return this.#error
  }

  /** Runs the sync. It never rejects. */
  async run(): Promise<void> {
    const { entries, blocks, heartbeat } = this.#request
    const chunks = await this.#chunksOf(entries, blocks)
    const quota = entries.some(({ lease }) => lease !== undefined) ? await this.#leases() : undefined
    await Promise.all([
      ...Array.from(chunks, ([bucket, list]) => this.#try(() => this.#runChunks(bucket, list))),
      ...(quota === undefined ? [] : [this.#askLeases(quota)]),
    ])
    // A sync with nothing to send still returns the store's time.
    if (heartbeat !== undefined || (chunks.size === 0 && quota === undefined)) await this.#beat()
  }

  /** The reply so far. `middle`: the middle of the sync on the process's monotonic clock. */
  reply(middle: number): SyncReply {
    const moment = this.#context.reference ?? (this.#moment as Moment)
    return {
      time: moment.time + (middle - moment.middle),
      results: [...this.#results],
      blocks: [...this.#blocks],
      ...(this.#heartbeat && { heartbeat: this.#heartbeat }),
    }
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#error ??= error
    }
  }

  #answeredBy(bucket: Shard, moment: Moment): void {
    this.#answers++
    this.#moment = moment
    this.#context.heardAt = Math.max(this.#context.heardAt, moment.middle)
    this.#progressed()
    if (bucket === this.#context.shards[0]) this.#context.reference = moment
  }

  async #runChunks(place: number, chunks: readonly Chunk[]): Promise<void> {
    const bucket = this.#context.shards[place] as Shard
    for (const chunk of chunks) {
      const { rest, setBack } = await this.#call(bucket, chunk)
      const { blockPlaces } = chunk
      const entryPlaces = chunk.entryPlaces()
      // If a result can't be read, only that entry or block has failed, and is sent again.
      blockPlaces.forEach((at, i) => {
        this.#blocks[at] = understood(() => Math.max(0, parseRemaining(rest[i]) - setBack))
      })
      entryPlaces.forEach((at, i) => {
        const result = understood(() => parseResult(rest[blockPlaces.length + i], this.#request.entries[at]?.cells ?? []))
        this.#results[at] = result && setBack > 0 ? { ...result, blocked: Math.max(0, result.blocked - setBack) } : result
      })
    }
  }

  /** Returns undefined if the code can't be loaded. Only the quota fails then, and the next sync requests it again. */
  async #leases(): Promise<Leases | undefined> {
    leases ??= await loadCode(() => import('./leases.ts')).catch((cause: unknown) => void this.#context.notLoaded(cause))
    return leases
  }

  async #askLeases({ leaseChunksOf, leaseScript, parseLease }: Leases): Promise<void> {
    const channel = this.#context.channel ?? false
    const chunks = leaseChunksOf(this.#request.entries, this.#context.keys)
    const call = async (place: number, list: typeof chunks extends ReadonlyMap<number, infer List> ? List : never): Promise<void> => {
      const bucket = this.#context.shards[place] as Shard
      for (const chunk of list) {
        const argumentOf = (common: object): string => chunk.argument({ ...common, channel })
        const { moment, rest, setBack } = await bucket.call(leaseScript, chunk.keys, argumentOf, this.#life, this.#nodesTime)
        const { places } = chunk
        if (rest.length !== places.length && rest.length !== places.length + 1) throw replyError('too few results')
        this.#answeredBy(bucket, moment)
        if (rest.length > places.length) this.#context.lost(rest[places.length])
        places.forEach((at, i) => {
          const result = understood(() => parseLease(rest[i]))
          this.#results[at] = result && { ...result, blocked: Math.max(0, result.blocked - setBack) }
        })
      }
    }
    await Promise.all(Array.from(chunks, ([bucket, list]) => this.#try(() => call(bucket, list))))
  }

  /** Divides the entries into chunks, without entries whose script can't be loaded. Only these fail, and are sent again. */
  async #chunksOf(entries: readonly SyncEntry[], blocks: readonly BlockChange[]): Promise<ReadonlyMap<number, readonly Chunk[]>> {
    const missing = new Set<Shape>()
    for (const { policy, lease } of entries) if (lease === undefined && !loaded.has(shapeOf(policy))) missing.add(shapeOf(policy))
    for (const shape of missing) {
      await load(shape).then(
        () => missing.delete(shape),
        (cause: unknown) => this.#context.notLoaded(cause),
      )
    }
    return chunksOf(entries, blocks, this.#context.keys, missing)
  }

  async #call(bucket: Shard, chunk: Chunk): Promise<Answer> {
    const argumentOf = (common: object): string => chunk.argument({ ...common, channel: this.#context.channel ?? false })
    const answer = await bucket.call(loaded.get(chunk.kind) as Script, chunk.keys(), argumentOf, this.#life, this.#nodesTime)
    const { moment, rest } = answer
    const { results } = chunk
    if (rest.length !== results && rest.length !== results + 1) throw replyError('too few results')
    this.#answeredBy(bucket, moment)
    if (rest.length > results) this.#context.lost(rest[results])
    return answer
  }

  async #beat(): Promise<void> {
    const request = this.#request.heartbeat
    if (request === undefined) {
      await this.#try(() => this.#ask(this.#context.shards[0] as Shard))
      return
    }
    const { shards: buckets } = this.#context
    const cursors = parseCursor(request.cursor, buckets.length)
    const starting = cursors === undefined
    const policyIds = new Set(request.policies.map(({ id }) => id))
    const blocks: BlockState[] = []
    const news: LeaseNotice[] = []
    const hot: SyncEntry[] = []
    const before = this.#answers
    await Promise.all(
      buckets.map((bucket, place) =>
        this.#try(async () => {
          bucket.cursor = cursors?.[place] ?? 0
          for (const state of await this.#beatBucket(bucket, place === 0, request, starting ? hot : undefined, news)) {
            const lasts = state.remaining > 0 || state.epoch !== undefined
            if (policyIds.has(state.policyId) && (lasts || !starting)) blocks.push(state)
          }
        }),
      ),
    )
    if (this.#answers === before) return
    const totals = starting
      ? await this.#totals(
          hot.filter(({ policy }) => policyIds.has(policy.id)),
          blocks,
        )
      : []
    this.#heartbeat = {
      nodes: Math.max(1, this.#context.nodes),
      generation: this.#context.generation(),
      cursor: buckets.map(({ cursor }) => cursor).join(','),
      blocks,
      hot: totals,
      leases: news.filter(({ policyId }) => policyIds.has(policyId)),
      watched: this.#watched,
      ...(this.#ahead !== undefined && { ahead: this.#ahead }),
      ...(this.#statuses && { statuses: this.#statuses }),
      ...(this.#rules && { rules: this.#rules }),
    }
  }

  /** Sends the heartbeat to one shard. Repeats it until all changed blocks have arrived. */
  async #beatBucket(
    bucket: Shard,
    registry: boolean,
    request: HeartbeatRequest,
    hot: SyncEntry[] | undefined,
    news: LeaseNotice[],
  ): Promise<BlockState[]> {
    const states: BlockState[] = []
    const { ttl, status, watch, rules } = request
    let wantsHot = hot !== undefined
    let wantsNews = request.leases === true
    for (let page = 0; page < MOST_PAGES; page++) {
      const { cursor } = bucket
      const { nodes: registryKey, status: statusKey, ahead: aheadKey, rules: rulesKey, leases: newsKey } = bucket.keys
      const { moment, rest, setBack } = await bucket.call(
        heartbeatScript,
        [registryKey, statusKey, aheadKey, rulesKey, newsKey],
        (common) =>
          JSON.stringify({
            ...common,
            ttl,
            registry,
            cursor,
            page: PAGE,
            hot: wantsHot,
            leases: wantsNews,
            ...(registry && { status, watch, rules }),
          }),
        this.#life,
        this.#nodesTime,
      )
      const [nodes, versionText, nextText, hotMembers, blocks, watched, statuses, ahead, otherRules, leaseNews, lost] = rest
      // A heartbeat without these values is useless, so they may throw.
      const version = parseWhole(versionText)
      const next = parseWhole(nextText)
      this.#answeredBy(bucket, moment)
      this.#context.lost(lost)
      // Any other part may be invalid without an effect on the rest.
      if (registry) {
        this.#context.nodes = understood(() => parseWhole(nodes)) ?? this.#context.nodes
        this.#watched = watched === 1
        this.#ahead = ahead === '' || ahead === undefined ? undefined : understood(() => parseNumber(ahead))
        if (watch) this.#statuses = parseStatuses(statuses)
        if (rules !== undefined && page === 0) this.#rules = parseRules(otherRules)
      }
      if (wantsHot && Array.isArray(hotMembers)) {
        for (const member of hotMembers.slice(0, MOST_HOT)) understood(() => this.#wantTotal(member, moment, hot))
      }
      if (wantsNews && Array.isArray(leaseNews)) {
        for (const member of leaseNews.slice(0, MOST_HOT)) {
          const notice = understood(() => parseNews(member))
          if (notice !== undefined) news.push(notice)
        }
      }
      wantsNews = false
      wantsHot = false
      const found = Array.isArray(blocks) ? blocks : []
      for (let i = 0; i + 1 < found.length && i < 2 * PAGE; i += 2) {
        const state = understood((): BlockState => {
          const { policyId, key } = parseMember(found[i])
          const block = parseBlock(found[i + 1])
          return { policyId, key, ...block, remaining: Math.max(0, block.remaining - setBack) }
        })
        if (state !== undefined) states.push(state)
      }
      // An older version than this process has received shows that the shard lost data. It then returns all blocks that it has.
      if (version < cursor) this.#context.blocksLost()
      bucket.cursor = version < cursor ? 0 : next
      if (bucket.cursor === version || bucket.cursor === cursor) return states
    }
    return states
  }

  #wantTotal(member: unknown, moment: Moment, hot: SyncEntry[] | undefined): void {
    const { policyId, key, ordinal } = parseMember(member)
    const policy = this.#request.heartbeat?.policies.find(({ id }) => id === policyId)
    if (policy === undefined) return
    hot?.push({ policy, key, cells: [{ ordinal: ordinal ?? ordinalAt(moment.time, policy.width), taken: 0, given: 0 }] })
  }

  /** Returns the totals of keys near their limits, for a process that starts. */
  async #totals(entries: readonly SyncEntry[], blocks: readonly BlockState[]): Promise<TotalAnnouncement[]> {
    const resets = new Map(blocks.map(({ policyId, key, epoch }) => [`${policyId}\n${key}`, epoch]))
    const totals: TotalAnnouncement[] = []
    await Promise.all(
      Array.from(await this.#chunksOf(entries, []), ([place, chunks]) =>
        this.#try(async () => {
          for (const chunk of chunks) {
            const { rest } = await this.#call(this.#context.shards[place] as Shard, chunk)
            chunk.entryPlaces().forEach((at, i) => {
              const { policy, key, cells: asked } = entries[at] as SyncEntry
              const { cells } = understood(() => parseResult(rest[i], asked)) ?? { cells: [] }
              // Leaves out keys without counts, because any client of Redis can add names to the list, and buckets that have drained.
              if (!cells.some(({ taken, level = policy.hot }) => taken > 0 && level >= policy.hot / 2)) return
              const epoch = resets.get(`${policy.id}\n${key}`)
              const concerned = epoch !== undefined && (cells[0] as Cell).ordinal <= lastCellOf(epoch, policy.width)
              totals.push({ type: 'total', policyId: policy.id, key, cells, ...(concerned && { epoch }) })
            })
          }
        }),
      ),
    )
    return totals
  }

  async #ask(bucket: Shard): Promise<void> {
    const argumentOf = (common: object): string =>
      JSON.stringify({ ...common, prefix: '', channel: false, policies: [], blocks: [], plain: [], entries: [], rare: false })
    const { moment } = await bucket.call(exchangeScript, [], argumentOf, this.#life)
    this.#answeredBy(bucket, moment)
  }
}

/** Reads the versions of the block lists, one for each shard. An invalid cursor requests everything, like a missing one. */
function parseCursor(cursor: string | undefined, buckets: number): number[] | undefined {
  const versions = cursor?.split(',').map(Number) ?? []
  return versions.length === buckets && versions.every((version) => Number.isSafeInteger(version)) ? versions : undefined
}
