import { WeirError } from '@weir/core'
import { pack, packDecide, unpackVerdicts } from '@weir/core/hub'
import {
  type AuditLog,
  afterSilence,
  boundedLog,
  closedPart,
  type Decider,
  type StoreConnection,
  type StoreNode,
  type SyncReply,
  type SyncRequest,
} from '@weir/core/sync'
import type { HubStub } from './platform.ts'
import { joined, shardOf, split } from './shards.ts'
import type { HubReply } from './weir-hub.ts'

const CLOSED = 'The connection to the store'
/** Milliseconds for which a sync waits for the other objects once one has answered. */
const LATE = 200

/** One process's connection to the objects. */
export class HubConnection implements StoreConnection {
  readonly #node: StoreNode
  readonly #timeout: number
  readonly #stub: (shard: number) => HubStub
  /** For each shard the number of the last announcement that arrived. */
  readonly #seen: (number | undefined)[]
  /** For each shard the generation that it had last, or nothing. */
  readonly #generations: string[]
  #closed = false

  constructor(node: StoreNode, shards: number, timeout: number, stub: (shard: number) => HubStub) {
    this.#node = node
    this.#timeout = timeout
    this.#stub = stub
    this.#seen = Array.from({ length: shards }, () => undefined)
    this.#generations = Array.from({ length: shards }, () => '')
  }

  async sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) throw closedPart(CLOSED)
    const parts = split(request, this.#seen.length)
    const replies = await this.#replies(parts).catch((error: unknown) => {
      if (this.#closed || !parts.includes(undefined)) throw error
      // If the other objects answer, only the keys of this request fail. The store is not down.
      return this.#replies(parts.map((part) => (part === undefined ? { entries: [], blocks: [] } : undefined)))
    })
    if (this.#closed) throw closedPart(CLOSED)
    return joined(request, replies, this.#generations)
  }

  /**
   * The replies of all objects. Once one has answered, an object that hangs delays the keys of the others only shortly.
   *
   * @throws the first error if no object answers
   */
  async #replies(requests: readonly (SyncRequest | undefined)[]): Promise<readonly (SyncReply | undefined)[]> {
    const parts = requests.map((part, shard) => part && this.#exchange(shard, part))
    const replies: (SyncReply | undefined)[] = parts.map(() => undefined)
    let cancel: (() => void) | undefined
    const late = new Promise<void>((resolve) => {
      for (const [shard, part] of parts.entries()) {
        const answered = (reply: SyncReply): void => {
          replies[shard] = reply
          cancel ??= afterSilence(this.#node.clock, LATE, resolve)
        }
        part?.then(answered, () => {})
      }
    })
    const outcomes = await Promise.race([Promise.allSettled(parts), late])
    cancel?.()
    const failed = outcomes?.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined && replies.every((reply) => reply === undefined)) throw failed.reason
    return replies
  }

  async #exchange(shard: number, request: SyncRequest): Promise<SyncReply> {
    const seen = this.#seen[shard]
    const answer = (await this.#call(shard, (stub) => stub.sync(this.#node.id, pack(request), seen))) as HubReply | undefined
    if (!Array.isArray(answer?.reply?.results) || !Array.isArray(answer.reply.blocks) || !Array.isArray(answer.news)) throw unreadable()
    if (!Number.isSafeInteger(answer.seen)) throw unreadable()
    // Another sync may have returned some of the announcements meanwhile. Smaller numbers than before are of a new object, whose clock was
    // set back.
    const last = (seen !== undefined && answer.seen < seen ? undefined : this.#seen[shard]) ?? Number.NEGATIVE_INFINITY
    this.#seen[shard] = Math.max(last, answer.seen)
    if (!this.#closed) for (const { number, announcement } of answer.news) if (number > last) this.#node.announced(announcement)
    return answer.reply
  }

  async decider(): Promise<Decider> {
    return {
      partOf: (key) => shardOf(key, this.#seen.length),
      decide: async (request) => {
        const shard = shardOf(request.questions[0]?.key ?? '', this.#seen.length)
        const verdicts = await this.#call(shard, (stub) => stub.decide(this.#node.id, packDecide(request)))
        if (verdicts === undefined) throw unreadable()
        return unpackVerdicts(verdicts)
      },
    }
  }

  async audit(): Promise<AuditLog> {
    const call = async (entry: string | undefined, most: number): Promise<readonly string[]> =>
      (await this.#call(0, (stub) => stub.audit(entry, most))) as readonly string[]
    const log = { add: async (entry: string) => void (await call(entry, 0)), list: (most: number) => call(undefined, most) }
    return boundedLog(log, this.#node.clock, (error) => error as Error)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    const left = this.#seen.map((_, shard) => this.#call(shard, (stub) => stub.leave(this.#node.id)))
    this.#closed = true
    await Promise.allSettled(left)
  }

  /** Calls an object, and keeps the running request of the Worker open until the answer arrives. */
  async #call<T>(shard: number, run: (stub: HubStub) => Promise<T>): Promise<T> {
    if (this.#closed) throw closedPart(CLOSED)
    const { clock } = this.#node
    const release = clock.hold?.()
    let cancel: (() => void) | undefined
    try {
      const late = new Promise<never>((_, reject) => {
        const what = `The Durable Object did not answer within ${this.#timeout} ms`
        cancel = afterSilence(clock, this.#timeout, () => reject(new WeirError('WEIR_STORE_TIMEOUT', `${what}. Check its load.`)))
      })
      return await Promise.race([run(this.#stub(shard)), late])
    } catch (cause) {
      if (cause instanceof WeirError) throw cause
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new WeirError('WEIR_STORE_UNAVAILABLE', `The Durable Object failed (${why}). Check its logs.`, { cause })
    } finally {
      cancel?.()
      release?.()
    }
  }
}

function unreadable(): WeirError {
  const why = 'The Durable Object could not read a request, has no memory left for its keys, or has more than 4,096 live isolates'
  const next = 'Deploy the same version of @weir/workers with all Workers that use it. If memory is used up, increase "shards".'
  return new WeirError('WEIR_STORE_REPLY', `${why}. ${next}`)
}
